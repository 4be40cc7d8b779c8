"""Completes partial events, and makes of them the Arrow table that replaces a decoded topic.

A partial event has only the fields that its test is about:

    {"amount": "12.50"}                     money as text; a Decimal is fine too
    {"at": "-10m"}                          event time relative to NOW; or event_time as a datetime
    {"device": None}                        a field that is missing
    {"value": {...}, "headers": {...}}      a dead letter, as `lozenge dlq show NAME POSITION -o json` prints it

The other fields have the examples of the stream's schema, or else a value of their type. Events are of the only stream
there is, unless `stream` says of which. The n-th event of a list has the id "e<n>" and the event
time NOW plus n seconds, unless it has its own. For a detector of several streams an event names its own:

    {"stream": "login", "result": "failed"} the fields of the other streams are null

For one of alerts it has the fields of an alert, or is an alert as `lozenge peek` prints it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import RecordPosition
from lozenge.contracts.topics import Topics
from lozenge.detector.definition import INPUT, RAW
from lozenge.durations import duration
from lozenge.streams.alert_stream import event_of
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import DECIMAL, TEXT, TIME, Field
from lozenge.streams.project import Streams, streams_folder
from lozenge.streams.union_schema import STREAM

NOW = datetime(2024, 5, 14, 12, 0, tzinfo=UTC)
"""The event time that tests start from."""
PLATFORM = Topics()
"""The platform whose topics the kit imitates."""

PartialEvent = Mapping[str, Any]
CompleteEvent = dict[str, Any]
"""All fields of a canonical event by name."""

_ENVELOPE = (
    Field("event_id", TEXT, optional=False, hints={}),
    Field("event_time", {"type": "long", "logicalType": TIME}, optional=False, hints={}),
)
_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bytes": pa.binary(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def the_stream(given: StreamDefinition | None = None) -> StreamDefinition:
    """The stream that is `given`, or the default one of the project. Raises UsageError if there is none."""
    return given if given is not None else _only(streams_folder())


@cache
def _only(folder: Path) -> StreamDefinition:
    return Streams.of(folder).get()


def events(partials: Iterable[PartialEvent], stream: StreamDefinition | None = None) -> list[CompleteEvent]:
    """Complete events in the order in which they arrive. Complete events pass unchanged.

    Times and decimals may be the text that JSON has. Raises ValueError for a field that the event schema does not have,
    for a value of another type, and for a dead letter that holds no event.
    """
    of = the_stream(stream)
    return [_complete(_of_dead_letter(each, number, of), number, of) for number, each in enumerate(partials, 1)]


def event_table(complete: Iterable[CompleteEvent], key: str, stream: StreamDefinition) -> pa.Table:
    """The events with the platform's own column, as the job reads them from a topic that column `key` keys.

    Events without the key are skipped, as the job skips them.
    """
    offsets: Counter[int] = Counter()
    rows = []
    for event in complete:
        if event[key] is None:
            continue
        partition = partition_of(event[key].encode(), PLATFORM.partitions)
        own = {
            "key": event[key],
            "partition": partition,
            "offset": offsets[partition],
            "traceparent": None,
            "arrived": event["raw"]["timestamp"],
        }
        offsets[partition] += 1
        rows.append({**event, INPUT: own})
    return pa.Table.from_pylist(rows, schema=_arrow_schema(stream))


def positions(batch: pa.Table) -> list[RecordPosition]:
    """Partition and offset of each event of a table."""
    owns: list[Any] = batch.column(INPUT).to_pylist()
    return [(own["partition"], own["offset"]) for own in owns]


def _of_dead_letter(partial: PartialEvent, number: int, stream: StreamDefinition) -> PartialEvent:
    """The event of a dead letter, and of an alert that a detector of alerts reads; any other one as it is."""
    if not isinstance(partial, Mapping):
        raise ValueError(f"event {number} is {partial!r}; pass a list of dictionaries, as run(detector, [{{...}}])")
    is_dead_letter = {"value", "headers"} <= partial.keys()
    value = partial["value"] if is_dead_letter else partial
    if stream.alerts_of and isinstance(value, Mapping) and "alert_id" in value:
        return event_of(value)
    if not is_dead_letter:
        return partial
    if not isinstance(value, Mapping) or "event_id" not in value:
        raise ValueError(
            f"event {number}: the dead letter holds no event, but {value!r}; one of a timer or group has none"
        )
    return value


def _time(value: Any) -> Any:
    """A time as it is, or from ISO 8601; without a zone it is UTC. Raises ValueError."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(found, datetime | None):
        raise ValueError(f"a time is {value!r}, not a datetime")
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def _complete(partial: PartialEvent, number: int, stream: StreamDefinition) -> CompleteEvent:
    try:
        of = stream.member(named := _with_stream(partial, stream))
    except ValueError as error:
        raise ValueError(f"event {number}: {error}") from None
    own = {field.name: field for field in of.fields}
    names = ("event_id", "event_time", *([STREAM] if stream.members else []), *own, RAW)
    others = [field.name for field in stream.fields if field.name not in names]
    if unknown := [name for name in named if name != "at" and name not in names and not _is_null(named, name, others)]:
        whose = f"an event of {of.name}" if stream.members else "it"
        raise ValueError(f"event {number}: no such field: {', '.join(sorted(unknown))}; {whose} has {', '.join(names)}")
    event_time = NOW + (duration(named["at"]) if "at" in named else timedelta(seconds=number))
    event: CompleteEvent = {"event_id": f"e{number}", "event_time": event_time}
    event |= {name: each.example for name, each in own.items()} | {**named}
    event.pop("at", None)
    problems = []
    for field in (*_ENVELOPE, *own.values()):
        try:
            event[field.name] = _value(field, event[field.name])
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError(f"event {number}: {'; '.join(problems)}")
    topic = PLATFORM.prefixed(next(iter(of.raw_topics), of.name))
    raw = {"source": "test", "topic": topic, "partition": 0, "offset": number}
    raw |= {"timestamp": event["event_time"] or NOW, **(event.get(RAW) or {})}
    event[RAW] = {**raw, "timestamp": _time(raw["timestamp"])}
    return {name: event.get(name) for name in ("event_id", "event_time", *(f.name for f in stream.fields), RAW)}


def _with_stream(partial: PartialEvent, stream: StreamDefinition) -> PartialEvent:
    """The event with its stream; one that has every field of a single stream, as of a dead letter, needs no name."""
    if STREAM in partial:
        return partial
    fitting = [
        m.name for m in stream.members if {"event_id", "event_time", RAW, *(f.name for f in m.fields)} == {*partial}
    ]
    return {**partial, STREAM: fitting[0]} if len(fitting) == 1 else partial


def _is_null(event: PartialEvent, name: str, names: Collection[str]) -> bool:
    """Whether it is one of `names` and null: what an event lacks of the streams that it is not of."""
    return name in names and event[name] is None


def _value(field: Field, value: Any) -> Any:
    """The value as an event holds it; raises ValueError for one of another type."""
    if value is None:
        return None
    match field.kind:
        case "decimal":
            return _decimal(field, value)
        case "timestamp-micros":
            return _time(value)
        case "date":
            return date.fromisoformat(value) if isinstance(value, str) else value
        case "string" | "enum" if not isinstance(value, str):
            raise ValueError(f"{field.name} is {value!r}, not text")
        case "record" if isinstance(value, Mapping):
            return {each.name: _value(each, value.get(each.name)) for each in field.fields}
    return value


def _decimal(field: Field, value: Any) -> Decimal:
    """A decimal as an event holds it: a float is the number that it is printed as. Raises ValueError."""
    precision, scale = field.type["precision"], field.type.get("scale", 0)
    try:
        number = Decimal(str(value))
        fits = number == number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=precision))
    except ArithmeticError:
        fits = False
    if not fits:
        raise ValueError(
            f"{field.name} is {value!r}, not a number with at most {precision - scale} digits and {scale} decimals, "
            'such as "12.50"'
        )
    return number


def nullable(event: CompleteEvent, stream: StreamDefinition) -> tuple[str, ...]:
    """The optional fields of an event."""
    return tuple(field.name for field in stream.member(event).fields if field.optional)


def _arrow_schema(stream: StreamDefinition) -> pa.Schema:
    own: dict[str, pa.DataType] = {
        "key": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "traceparent": pa.string(),
        "arrived": pa.timestamp("us", "UTC"),
    }
    fields = {field["name"]: _arrow(field["type"]) for field in stream.wire_schema["fields"]}
    return pa.schema({**fields, INPUT: pa.struct(list(own.items()))})


def _arrow(avro: Any) -> pa.DataType:
    if isinstance(avro, list):  # a union with null: every column of a test is nullable
        return _arrow(next(branch for branch in avro if branch != "null"))
    if isinstance(avro, str):
        return _PRIMITIVES[avro]
    if avro.get("logicalType") == TIME:
        return pa.timestamp("us", "UTC")
    if avro.get("logicalType") == "date":
        return pa.date32()
    if avro.get("logicalType") == DECIMAL:
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    if avro["type"] == "record":
        return pa.struct({field["name"]: _arrow(field["type"]) for field in avro["fields"]})
    if avro["type"] == "array":
        return pa.list_(_arrow(avro["items"]))
    if avro["type"] == "map":
        return pa.map_(pa.string(), _arrow(avro["values"]))
    return pa.string() if avro["type"] == "enum" else _arrow(avro["type"])
