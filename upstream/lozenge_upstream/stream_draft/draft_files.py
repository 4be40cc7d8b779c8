"""The files of a drafted stream. Guesses are comments in TOML, and `doc` in the schema."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from lozenge.streams.folder import DECLARATION, MAPPINGS, SAMPLES, SCHEMA
from lozenge_upstream.stream_draft.draft import StreamDraft
from lozenge_upstream.stream_draft.field_guess import TOKEN_WORD, FieldGuess
from lozenge_upstream.stream_draft.toml_text import toml_block, toml_key, toml_value
from lozenge_upstream.stream_samples.tried_record import TriedRecord, as_json


def definition_files(draft: StreamDraft) -> dict[str, str]:
    """Declaration, schema and mapping, by their paths in the folder of the stream."""
    return {
        DECLARATION: _text(_declaration(draft)),
        SCHEMA: _schema(draft),
        f"{MAPPINGS}/{draft.request.source}.toml": _text(_mapping(draft)),
    }


def sample_file(draft: StreamDraft, samples: list[tuple[int, str, TriedRecord]], arrived: datetime) -> dict[str, str]:
    """The samples: of each its number among the records, its text and what becomes of it."""
    lines = [
        "# Records from which the stream was drafted, and what must become of them.",
        "# Look through them before others can read them: they are real.",
        "# A sample needs only the fields that it is about.",
        f"arrived = {toml_value(arrived)}",
    ]
    for number, text, tried in samples:
        lines += ["", "[[sample]]", f'name = "record {number}"', f"record = {toml_block(text)}", *_outcome(tried)]
    return {f"{SAMPLES}/{draft.request.source}.toml": _text(iter(lines))}


def _declaration(draft: StreamDraft) -> Iterator[str]:
    request = draft.request
    yield f"# Drafted from {draft.records} record(s). Lines with `guessed` are the ones to look at."
    yield f"title = {toml_value(request.name.replace('_', ' ').capitalize())}"
    yield f"owner = {toml_value(request.owner)}"
    yield ""
    yield "# The entities of alerts, and the field of each. The first one keys the topic."
    if not request.keys:
        yield "# guessed: it was the only field of every record that names something"
    yield f"keys = {toml_value(dict(draft.keys))}"
    if draft.tokens:
        yield ""
        yield "# guessed: fields that hold a keyed token instead of a card number, and the word that it begins with"
        yield f"tokens = {toml_value(dict.fromkeys(draft.tokens, TOKEN_WORD))}"
    yield ""
    yield "# How long its events are kept."
    yield 'retention = "7d"'
    yield ""
    yield "# An event that lies further after its raw record's Kafka timestamp is a dead letter."
    yield 'future_cap = "10m"'


def _schema(draft: StreamDraft) -> str:
    head = {
        "type": "record",
        "name": draft.request.record_name,
        "namespace": draft.request.name,
        "doc": f"One event of {draft.request.name}. Drafted from {draft.records} record(s).",
    }
    fields = ",\n".join(f"    {json.dumps(field.avro, ensure_ascii=False)}" for field in draft.mapped)
    lines = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}," for name, value in head.items()]
    return "\n".join(["{", *lines, '  "fields": [', fields, "  ]", "}", ""])


def _mapping(draft: StreamDraft) -> Iterator[str]:
    request = draft.request
    yield f"# Drafted from {draft.records} record(s). docs/mappings.md has every transform."
    yield f"source = {toml_value(request.source)}  # part of each event_id: never change it"
    yield f"topic = {toml_value(request.topic)}"
    yield f"# the key of the stream by which the raw topic is keyed, such as {next(iter(draft.keys))}, or none"
    yield 'keyed_by = ""'
    yield ""
    yield "[fields]"
    if draft.own_id is None:
        yield "# guessed: no field is the id of a record, so one that comes twice is two events. With one:"
        yield '# transaction_id = { transform = "text", path = "..." }'
    else:
        if request.own_id is None:
            yield "# guessed: an event with an equal id is a repeat"
        yield _line("transaction_id", {"transform": "text", "path": draft.own_id})
    if not request.time:
        yield "# guessed: it was the only time in every record"
    yield _line("event_time", draft.time)
    for field in draft.fields:
        if not field.parts:
            yield from (f"# guessed: {note}" for note in field.notes)
            yield from [_line(field.name, field.transform)] if field.transform is not None else []
    for field in draft.fields:
        if field.parts:
            yield ""
            yield from (f"# guessed: {note}" for note in field.all_notes)
            yield from _table(field)


def _table(field: FieldGuess) -> Iterator[str]:
    if field.transform is not None:
        yield f"[fields.{toml_key(field.name)}]"
        yield from _dotted("", field.transform)


def _dotted(above: str, spec: dict[str, Any]) -> Iterator[str]:
    """A transform of several parts, each on a line of its own."""
    inner = {f"fields.{toml_key(name)}": part for name, part in spec.get("fields", {}).items()}
    inner |= {"of": spec["of"]} if spec["transform"] in ("list", "map") else {}
    for name in ("transform", "path"):
        if name in spec:
            yield f"{above}{name} = {toml_value(spec[name])}"
    for name, part in inner.items():
        if part["transform"] in ("record", "list", "map"):
            yield from _dotted(f"{above}{name}.", part)
        else:
            yield f"{above}{name} = {toml_value(part)}"


def _line(name: str, spec: dict[str, Any]) -> str:
    return f"{toml_key(name)} = {toml_value(spec)}"


def _outcome(tried: TriedRecord) -> Iterator[str]:
    if tried.event is None:
        yield f"dead_letter = {toml_value(', '.join(tried.problems))}"
        return
    yield ""
    yield "[sample.event]"
    for name, value in tried.event.items():
        if name != "event_id":
            yield f"{toml_key(name)} = {toml_value(_said(value))}"


def _said(value: Any) -> Any:
    """A value as a sample writes it; what a record within has not is not named."""
    if isinstance(value, dict):
        return {name: _said(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_said(part) for part in value]
    return value if isinstance(value, datetime) else as_json(value)


def _text(lines: Iterator[str]) -> str:
    return "\n".join([*lines, ""])
