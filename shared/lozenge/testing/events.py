"""Partial events made whole, and as the Arrow table that stands in for a decoded topic.

A partial event names only what its test is about:

    {"amount": "12.50"}                     money as text; a Decimal is fine too
    {"at": "-10m"}                          event time relative to NOW; or event_time as a datetime
    {"merchant_id": None}                   a field that is absent

Everything else comes from a plain, valid authorisation. The n-th event of a list is called "e<n>" and
happens n seconds after NOW unless it says otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Place
from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import EVENT_PARTITIONS, RAW_JSON
from lozenge.detector.definition import INPUT
from lozenge.durations import duration

NOW = datetime(2024, 5, 14, 12, 0, tzinfo=UTC)
"""The moment that tests happen at."""

Partial = Mapping[str, Any]
Whole = dict[str, Any]

_PLAIN: Whole = {
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
_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bytes": pa.binary(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def events(partials: Iterable[Partial]) -> list[Whole]:
    """Whole events in the order in which they arrive; whole ones pass unchanged.

    Raises ValueError for a field that the event schema does not have.
    """
    return [_whole(partial, number) for number, partial in enumerate(partials, 1)]


def table(wholes: Iterable[Whole], key: str) -> pa.Table:
    """The events with the platform's own column, as the job reads them from a topic keyed by column `key`.

    Events without the key are left out, as the job leaves them out.
    """
    offsets: Counter[int] = Counter()
    rows = []
    for event in wholes:
        if event[key] is None:
            continue
        partition = partition_of(event[key].encode(), EVENT_PARTITIONS)
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


def places(batch: pa.Table) -> list[Place]:
    """Where each event of `table` stands."""
    owns: list[Any] = batch.column(INPUT).to_pylist()
    return [(own["partition"], own["offset"]) for own in owns]


def _whole(partial: Partial, number: int) -> Whole:
    unknown = partial.keys() - {"at"} - set(_fields())
    if unknown:
        raise ValueError(f"event {number}: no such field: {', '.join(sorted(unknown))}; it has {', '.join(_fields())}")
    happened = NOW + (duration(partial["at"]) if "at" in partial else timedelta(seconds=number))
    event = {"event_id": f"e{number}", "event_time": happened, **_PLAIN, **partial}
    event.pop("at", None)
    if event["amount"] is not None:
        event["amount"] = Decimal(event["amount"])
    arrived = event["event_time"] or NOW
    event.setdefault(
        "raw", {"source": "test", "topic": RAW_JSON, "partition": 0, "offset": number, "timestamp": arrived}
    )
    return {name: event.get(name) for name in _fields()}


@cache
def nullable() -> tuple[str, ...]:
    """The fields that an event may lack."""
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
    if isinstance(avro, list):  # a union with null: every column of a test may be null
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
