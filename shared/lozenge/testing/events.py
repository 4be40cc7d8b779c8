"""Completes partial events, and makes of them the Arrow table that replaces a decoded topic.

A partial event has only the fields that its test is about:

    {"amount": "12.50"}                     money as text; a Decimal is fine too
    {"at": "-10m"}                          event time relative to NOW; or event_time as a datetime
    {"merchant_id": None}                   a field that is missing
    {"value": {...}, "headers": {...}}      a dead letter, as `lozenge dlq show NAME POSITION -o json` prints it

The other fields are those of an ordinary, valid authorisation. The n-th event of a list has the id "e<n>" and the event
time NOW plus n seconds, unless it has its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import RecordPosition
from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import Topics
from lozenge.detector.definition import INPUT
from lozenge.durations import duration

NOW = datetime(2024, 5, 14, 12, 0, tzinfo=UTC)
"""The event time that tests start from."""
PLATFORM = Topics()
"""The platform whose topics the kit imitates."""

PartialEvent = Mapping[str, Any]
CompleteEvent = dict[str, Any]
"""All fields of a canonical event by name."""

_DEFAULTS: CompleteEvent = {
    "card_id": "card-1",
    "account_id": "account-1",
    "merchant_id": "merchant-1",
    "terminal_id": "terminal-1",
    "mcc": "5999",
    "country": "DE",
    "amount": Decimal("10"),
    "currency": "EUR",
    "channel": "pos",
    "auth_result": "approved",
}
_TEXTS = ("event_id", *(name for name, value in _DEFAULTS.items() if isinstance(value, str)))
_LAST_DIGIT, _EXACT = Decimal("0.0001"), Context(prec=18)
_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bytes": pa.binary(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def events(partials: Iterable[PartialEvent]) -> list[CompleteEvent]:
    """Complete events in the order in which they arrive. Complete events pass unchanged.

    Times and amounts may be the text that JSON has. Raises ValueError for a field that the event schema does not have,
    for a value of another type, and for a dead letter that holds no event.
    """
    return [_complete(_of_dead_letter(partial, number), number) for number, partial in enumerate(partials, 1)]


def event_table(complete: Iterable[CompleteEvent], key: str) -> pa.Table:
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
    return pa.Table.from_pylist(rows, schema=_arrow_schema())


def positions(batch: pa.Table) -> list[RecordPosition]:
    """Partition and offset of each event of a table."""
    owns: list[Any] = batch.column(INPUT).to_pylist()
    return [(own["partition"], own["offset"]) for own in owns]


def _of_dead_letter(partial: PartialEvent, number: int) -> PartialEvent:
    """The event of a dead letter; any other partial event as it is."""
    if not isinstance(partial, Mapping):
        raise ValueError(f"event {number} is {partial!r}; pass a list of dictionaries, as run(detector, [{{...}}])")
    if not {"value", "headers"} <= partial.keys():
        return partial
    value = partial["value"]
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


def _complete(partial: PartialEvent, number: int) -> CompleteEvent:
    unknown = partial.keys() - {"at"} - set(_fields())
    if unknown:
        raise ValueError(f"event {number}: no such field: {', '.join(sorted(unknown))}; it has {', '.join(_fields())}")
    event_time = NOW + (duration(partial["at"]) if "at" in partial else timedelta(seconds=number))
    event = {"event_id": f"e{number}", "event_time": event_time, **_DEFAULTS, **partial}
    event.pop("at", None)
    try:
        event |= {"amount": _amount(event["amount"]), "event_time": _time(event["event_time"])}
        wrong = [f"{name} is {event[name]!r}, not text" for name in _TEXTS if not isinstance(event[name], str | None)]
        if wrong:
            raise ValueError("; ".join(wrong))
    except ValueError as error:
        raise ValueError(f"event {number}: {error}") from error
    raw = {"source": "test", "topic": PLATFORM.raw_json, "partition": 0, "offset": number}
    raw |= {"timestamp": event["event_time"] or NOW, **(event.get("raw") or {})}
    event["raw"] = {**raw, "timestamp": _time(raw["timestamp"])}
    return {name: event.get(name) for name in _fields()}


def _amount(value: Any) -> Decimal | None:
    """The amount as an event holds it: a float is the number that it is printed as. Raises ValueError."""
    if value is None:
        return None
    try:
        amount = Decimal(str(value))
        fits = amount == amount.quantize(_LAST_DIGIT, context=_EXACT)
    except ArithmeticError:
        fits = False
    if not fits:
        raise ValueError(f'amount is {value!r}, not a number with at most 14 digits and 4 decimals, such as "12.50"')
    return amount


@cache
def nullable() -> tuple[str, ...]:
    """The optional fields of an event."""
    return tuple(f["name"] for f in newest("event").definition["fields"] if "null" in f["type"])


@cache
def _fields() -> dict[str, pa.DataType]:
    return {field["name"]: _arrow(field["type"]) for field in newest("event").definition["fields"]}


@cache
def _arrow_schema() -> pa.Schema:
    own: dict[str, pa.DataType] = {
        "key": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "traceparent": pa.string(),
        "arrived": pa.timestamp("us", "UTC"),
    }
    return pa.schema({**_fields(), INPUT: pa.struct(list(own.items()))})


def _arrow(avro: Any) -> pa.DataType:
    if isinstance(avro, list):  # a union with null: every column of a test is nullable
        return _arrow(next(branch for branch in avro if branch != "null"))
    if isinstance(avro, str):
        return _PRIMITIVES[avro]
    if avro.get("logicalType") == "timestamp-micros":
        return pa.timestamp("us", "UTC")
    if avro.get("logicalType") == "decimal":
        return pa.decimal128(avro["precision"], avro["scale"])
    if avro["type"] == "record":
        return pa.struct({field["name"]: _arrow(field["type"]) for field in avro["fields"]})
    return _arrow(avro["type"])
