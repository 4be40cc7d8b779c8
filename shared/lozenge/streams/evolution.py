"""Whether an event schema may follow another one within v1: readers of either read the records of both.

That is Avro's FULL compatibility, and a little less: a type that only one of the two directions could widen is another
type, and so is an enum with another symbol. Anything else is a stream of a second version, with topics of its own.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lozenge.streams.fields import ARRAY, ENUM, MAP, RECORD


def incompatible(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Why records of the schemas `old` and `new`, as they are on the wire, cannot be in one topic; none if they can."""
    return [*_of_types(old, new, "")]


def _of_types(old: Any, new: Any, path: str) -> Iterator[str]:
    before, after = _plain(old), _plain(new)
    if _kind(before) != _kind(after):
        yield f"{path or 'the schema'} is {_kind(after)}, and was {_kind(before)}"
    elif isinstance(before, list):
        for one, other in zip(before, after, strict=True):
            yield from _of_types(one, other, path)
    elif before["type"] == RECORD:
        yield from _of_names(before, after, path)
        yield from _of_fields(before, after, f"{path}." if path else "")
    elif before["type"] == ENUM:
        yield from _of_names(before, after, path)
        if before["symbols"] != after["symbols"]:
            yield f"{path} has the symbols {', '.join(after['symbols'])}, and had {', '.join(before['symbols'])}"
    elif before["type"] in (ARRAY, MAP):
        inner = "items" if before["type"] == ARRAY else "values"
        yield from _of_types(before[inner], after[inner], f"{path}[]")


def _of_names(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[str]:
    before, after = (".".join(filter(None, (each.get("namespace"), each["name"]))) for each in (old, new))
    if before != after:
        yield f"{path or 'the schema'} is named {after}, and was {before}"


def _of_fields(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> Iterator[str]:
    before, after = ({field["name"]: field for field in each["fields"]} for each in (old, new))
    for name, field in after.items():
        if name in before:
            yield from _of_types(before[name]["type"], field["type"], f"{prefix}{name}")
        elif "default" not in field:
            yield f"{prefix}{name} is new, and older records do not have it: it needs a default"
    for name, field in before.items():
        if name not in after and "default" not in field:
            yield f"{prefix}{name} is gone, and readers of older schemas need it"


def _plain(kind: Any) -> Any:
    return {"type": kind} if isinstance(kind, str) else kind


def _kind(kind: Any) -> str:
    """What must be equal of a type; of a union, the types in their order."""
    if isinstance(kind, list):
        return " or ".join(_kind(_plain(each)) for each in kind)
    logical = kind.get("logicalType")
    if logical is None:
        return str(kind["type"])
    digits = (kind[name] for name in ("precision", "scale") if name in kind)
    return " ".join(map(str, (logical, *digits)))
