"""Converts Arrow columns to Python objects, with a fast path for times and decimals, and rows to alerts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lozenge.detector.events import Alert
from lozenge.errors import EncodeError
from lozenge.job.batch_result import DraftAlert

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REQUIRED = ("entity", "event_time", "dedup_key", "closes", "score", "reason")
"""Columns of `lozenge.alert` that no alert lacks: none has a default, so a null makes a dead letter."""


def rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of `table`, as values by column name."""
    names = table.column_names
    for batch in table.to_batches():
        columns = map(values, batch.columns)
        yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def values(column: "pa.Array[Any]") -> Sequence[Any]:
    """The values of `column`. Times are timezone-aware UTC; one beyond the years 1 to 9999 is None."""
    try:
        return _values(column)
    except (OverflowError, ValueError):  # Spark has times for which Python has none
        return [_readable(value) for value in column]


def _values(column: "pa.Array[Any]") -> Sequence[Any]:
    if column.null_count == len(column):  # an optional field that no source of these events has
        return [None] * len(column)
    if pa.types.is_timestamp(column.type) and column.null_count == 0:
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy()
        return [_EPOCH + elapsed for elapsed in micros.view("timedelta64[us]").tolist()]
    if pa.types.is_decimal(column.type):
        coded = column.dictionary_encode()
        amounts = [*coded.dictionary.to_pylist(), None]  # the last one is for nulls, which have no index
        return [amounts[-1 if index is None else index] for index in coded.indices.to_pylist()]
    found: Sequence[Any] = column.to_pylist(maps_as_pydicts="lossy")  # a key that is there twice has its last value
    return found


def _readable(value: Any) -> Any:
    try:
        return value.as_py(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        return None


def from_row(row: Any) -> DraftAlert:
    """The alert in a row of `lozenge.alert` columns. Its times become timezone-aware UTC. Raises EncodeError."""
    trigger = row["trigger"]
    position = (trigger["partition"], trigger["offset"]) if trigger is not None else None
    if missing := [name for name in REQUIRED if row[name] is None]:
        raise EncodeError(f"the alert cannot be written: its {', '.join(missing)} is null")
    try:
        alert = Alert(
            reason=row["reason"],
            score=row["score"],
            evidence=row["evidence"] or (),
            values=_texts(row["values"]),
            title=row["title"],
            severity=row["severity"],
            labels=_texts(row["labels"]),
        )
    except ValueError as error:
        raise EncodeError(str(error)) from error
    return DraftAlert(
        alert,
        entity=row["entity"],
        dedup_key=row["dedup_key"],
        event_time=_utc(row["event_time"]),
        closes=_utc(row["closes"]),
        trigger=position,
        position=position,
        traceparent=row["traceparent"],
        arrived=_utc(row["arrived"]) if row["arrived"] is not None else None,
    )


def _texts(pairs: Any) -> Mapping[str, str]:
    return {name: text if text is not None else "" for name, text in dict(pairs or ()).items()}


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
