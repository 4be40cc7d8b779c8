"""What becomes of one raw record: the fields of its event, or why there is none. For people who write a mapping."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import shown
from lozenge_upstream.normalise.declarations import IDENTITY_SEPARATOR
from lozenge_upstream.normalise.field_checks import EVENT_TIME, IDENTITY
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import RAW, SKIPPED, normalise
from lozenge_upstream.normalise.output_records import event_value

Arrival = tuple[bytes, datetime]
"""A raw record and its Kafka timestamp."""


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """The event of a raw record, field by field, as Python has its values; or the reasons of its dead letter; or what
    skips it.

    With the event is the source's own id, `transaction_id`. Optional fields that it lacks are not there.
    """

    event: dict[str, Any] | None
    problems: tuple[str, ...] = ()
    skipped: str = ""

    def shown(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"event": as_json(self.event), "problems": list(self.problems), "skipped": self.skipped}


def try_records(
    spark: SparkSession, mapping: Mapping, records: Sequence[Arrival], token_key: bytes
) -> list[TriedRecord]:
    """What becomes of raw records, in order; nothing is written.

    Exactly what upstream does with them, up to the bytes of the event, but for the `event_id` of a record without an
    identity of its own: that is made of its position in the topic. The session is one with upstream's settings, see
    `query_builder.SPARK`.
    """
    rows = [
        (None, mapping.topic, arrived, 0, bytearray(value), 0, at, None) for at, (value, arrived) in enumerate(records)
    ]
    made = normalise(spark.createDataFrame(rows, RAW), mapping, token_key)
    event = F.when(F.col("reason").isNull(), event_value(mapping.source, mapping.stream))
    found = made.select("offset", "reason", IDENTITY, event.alias("event")).orderBy("offset").collect()
    codec = Codec(mapping.stream.event_schema)
    return [_tried(row.reason, row.event, row[IDENTITY], mapping, codec) for row in found]


def as_json(value: Any) -> Any:
    """A value of an event as JSON has it: times and decimals as texts, card numbers masked."""
    match value:
        case dict():
            return {name: as_json(part) for name, part in value.items()}
        case list():
            return [as_json(part) for part in value]
        case Decimal():
            return f"{value.normalize():f}"
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case str():
            return shown(value.replace(IDENTITY_SEPARATOR, " | "))
    return value


def _tried(reason: str | None, event: bytes | None, own_id: str | None, mapping: Mapping, codec: Codec) -> TriedRecord:
    if reason is None:
        values = codec.decode(bytes(event or b""))
        values = {"event_id": values["event_id"], IDENTITY: own_id, EVENT_TIME: values[EVENT_TIME]} | {
            field.name: values[field.name] for field in mapping.stream.fields
        }
        return TriedRecord({name: each for name, each in values.items() if each is not None})
    if reason.startswith(SKIPPED):
        return TriedRecord(None, skipped=reason.removeprefix(SKIPPED))
    return TriedRecord(None, tuple(reason.split(", ")))
