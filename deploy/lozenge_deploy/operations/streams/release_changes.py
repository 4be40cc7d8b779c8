"""What differs between two releases of a stream, and whether one may follow the other in the same topics. Pure."""

from collections.abc import Collection, Iterator, Mapping
from difflib import unified_diff
from typing import Any

from lozenge.contracts.topics import Topics
from lozenge.protocol.stream_releases import ReleaseId
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.evolution import incompatible

Rows = list[dict[str, Any]]
Files = Mapping[str, str]
EXACT = "at a batch boundary, from the committed raw offsets on; no record is lost or repeated"
_SHOWN = ("title", "owner", "keys", "copies", "tokens", "retention", "future_cap")


def refusals(earlier: Mapping[str, StreamDefinition], new: StreamDefinition) -> list[str]:
    """Why `new` must not write to the topics of the `earlier` releases, by name; none if it may."""
    return list(dict.fromkeys(problem for name, old in earlier.items() for problem in _against(name, old, new)))


def _against(name: str, old: StreamDefinition, new: StreamDefinition) -> Iterator[str]:
    for problem in incompatible(old.wire_schema, new.wire_schema):
        yield f"event.avsc: {problem} in {name}"
    if old.app != new.app:
        yield f"stream.toml: app is {new.app}, and was {old.app} in {name}: another group has other offsets"
    if old.primary != new.primary:
        yield f"stream.toml: the first key is {new.primary}, and was {old.primary} in {name}: it keys the topic"
    for key, column in old.keys.items():
        if key not in new.keys:
            yield f"stream.toml: the key {key} of {name} is gone, and detectors may read its topic"
        elif new.keys[key] != column:
            yield f"stream.toml: the key {key} is {new.keys[key]}, and was {column} in {name}"
    for field, word in old.tokens.items():
        if new.tokens.get(field, word) != word:
            yield f"stream.toml: tokens of {field} begin with {new.tokens[field]}, and with {word} in {name}"


def changes(
    before: ReleaseId | None,
    after: ReleaseId,
    files: tuple[Files, Files],
    definitions: tuple[StreamDefinition | None, StreamDefinition],
    missing: Collection[str],
) -> Rows:
    """Each field that changes, with what it is now; `files` and `definitions` are those before and after.

    `missing` are the topics that are to be created.
    """
    old, new = definitions
    shown = [name for name in _SHOWN if old is not None and getattr(old, name) != getattr(new, name)]
    return [
        _row("release", " ".join(before) if before else None, " ".join(after)),
        *_file_rows(*files),
        *(_row(name, _text(getattr(old, name)), _text(getattr(new, name))) for name in shown),
        *_field_rows(old, new),
        *(_row("topic", None, f"{topic} is created") for topic in sorted(missing)),
        _row("offsets", None, EXACT),
    ]


def topics_of(stream: StreamDefinition, topics: Topics) -> list[str]:
    """The topics that a release needs: raw ones, events, the copies that it declares, and those of its normaliser."""
    return [topic.name for topic in stream.topics(topics, stream.copies)]


def _file_rows(old: Files, new: Files) -> Iterator[dict[str, Any]]:
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        lines = list(unified_diff((before or "").splitlines(), (after or "").splitlines(), n=0))[2:]
        removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
        yield _row(path, f"-{removed} lines" if before is not None else None, f"+{added} lines" if after else "removed")


def _field_rows(old: StreamDefinition | None, new: StreamDefinition) -> Iterator[dict[str, Any]]:
    before = {field.name: field for field in old.fields} if old is not None else {}
    after = {field.name: field for field in new.fields}
    if old is not None:
        yield from (_row(f"field {name}", None, field.kind) for name, field in after.items() if name not in before)
        yield from (_row(f"field {name}", field.kind, "removed") for name, field in before.items() if name not in after)


def _row(field: str, current: Any, new: Any) -> dict[str, Any]:
    return {"field": field, "current": current, "new": new}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {one}" for name, one in value.items()) or "-"
    return ", ".join(value) or "-" if isinstance(value, tuple) else str(value)
