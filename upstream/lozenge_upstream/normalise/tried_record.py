"""What becomes of one raw record: the fields of its event, or why there is none. For people who write a mapping."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.display_text import shown
from lozenge_upstream.normalise.field_checks import EVENT_TIME, IDENTITY
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import RAW, SKIPPED, column_of, normalise


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """The event of a raw record, field by field, as texts; or the reasons of its dead letter; or what skips it."""

    event: dict[str, str | None] | None
    problems: tuple[str, ...] = ()
    skipped: str = ""


def try_records(
    spark: SparkSession, mapping: Mapping, values: list[bytes], token_key: bytes, arrived: datetime
) -> list[TriedRecord]:
    """What becomes of raw records that arrive at that time, in order; nothing is written.

    Exactly what upstream does with them, but for the `event_id` of a record without an identity of its own: that is
    made of its position in the topic. The session is one with upstream's settings, see `query_builder.SPARK`.
    """
    rows = [(None, mapping.topic, arrived, 0, bytearray(value), 0, at, None) for at, value in enumerate(values)]
    raw = spark.createDataFrame(rows, RAW)
    names = ["event_id", IDENTITY, EVENT_TIME, *(field.name for field in mapping.stream.fields)]
    texts = [
        F.unix_micros(name).alias(name) if name == EVENT_TIME else F.col(column_of(name)).alias(f"_of_{name}")
        for name in names
    ]
    found = normalise(raw, mapping, token_key).select("offset", "reason", *texts).orderBy("offset").collect()
    return [_trial(row.asDict(), names, mapping.optional) for row in found]


def _trial(row: dict[str, Any], names: list[str], optional: Collection[str]) -> TriedRecord:
    reason: str | None = row["reason"]
    if reason is None:
        values = {name: row[name if name == EVENT_TIME else f"_of_{name}"] for name in names}
        return TriedRecord(
            {name: _text(name, value) for name, value in values.items() if name not in optional or value is not None}
        )
    if reason.startswith(SKIPPED):
        return TriedRecord(None, skipped=reason.removeprefix(SKIPPED))
    return TriedRecord(None, tuple(reason.split(", ")))


def _text(name: str, value: object) -> str | None:
    if name == EVENT_TIME and isinstance(value, int):
        return datetime.fromtimestamp(value / 1e6, UTC).isoformat()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return None if value is None else shown(str(value).replace("\x1f", " | "))
