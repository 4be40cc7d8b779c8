"""The rows of an aggregate in Real-Time Mode, on their way from Spark to Python.

Spark's plan may hold no Python in this mode. So Spark writes the rows into a topic of the detector's own, and the
process that runs Spark reads them there. The topic is a pipe: its records belong to one query, and a later query makes
those again that were not published. Each row carries the token of its query, and other rows are ignored. So rows of an
earlier query, whose sink knows no fence, have no effect.

Every event of a group writes the group's rows again, and most of them were published long before. So each row also
carries its alert id, by which such rows are dropped undecoded.
"""

import io
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from lozenge.contracts import ids
from lozenge.errors import BrokerUnavailable
from lozenge.job.identity import Identity
from lozenge.kafka.settings import KafkaSettings

MAX_ROWS = 1_000
"""The most rows of one `read`."""
PARTITION = 0
CALL_SECONDS = 10.0
STALL_SECONDS = 60.0
"""How long `rest` waits for further rows before the broker counts as unavailable."""


def _record(name: str, **types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": ["null", t]} for n, t in types.items()]}


_TEXTS = {"type": "map", "values": ["null", "string"]}
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_SCHEMA = _record(
    "row",
    entity="string",
    severity="string",
    score="double",
    title="string",
    reason="string",
    evidence={"type": "array", "items": ["null", "string"]},
    values=_TEXTS,
    event_time=_TIME,
    trigger=_record("position", partition="int", offset="long"),
    labels=_TEXTS,
    dedup_key="string",
    closes=_TIME,
    traceparent="string",
    arrived=_TIME,
)
"""The columns of `lozenge.alert`. All are nullable here, because the operator reports which required one is null."""
_PARSED = fastavro.parse_schema(_SCHEMA)


class ChangedRow(NamedTuple):
    """A row as it was read. Its `alert_id` is "" where the row makes no alert."""

    alert_id: str
    value: bytes

    def columns(self) -> Mapping[str, Any]:
        """The columns of `lozenge.alert`."""
        row: Any = fastavro.schemaless_reader(io.BytesIO(self.value), _PARSED, None)
        return dict(row)


def changelog_rows(alerts: DataFrame, identity: Identity, token: str) -> DataFrame:
    """The columns of Spark's Kafka sink for each row of `lozenge.alert` columns."""
    alert_id = ids.alert_id_column(identity.detector, identity.key, F.col("entity"), F.col("dedup_key"))
    return alerts.select(
        F.lit(identity.changelog).alias("topic"),
        F.lit(PARTITION).alias("partition"),
        F.concat(F.lit(token), F.coalesce(alert_id, F.lit(""))).cast("binary").alias("key"),
        to_avro(F.struct(*(field["name"] for field in _SCHEMA["fields"])), json.dumps(_SCHEMA)).alias("value"),
    )


class AggregateChangelog:
    """Reads what the newest query has written into `topic`; every method raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._topic, self._bootstrap = topic, kafka.bootstrap
        self._consumer = Consumer(
            kafka.client(group_id="lozenge-changelog", enable_auto_commit=False, auto_offset_reset="error")
        )
        # a connection of its own: a broker answers each connection in order, and a fetch waits up to half a second
        self._ends = Consumer(kafka.client(group_id="lozenge-changelog"))
        self._token = b""
        self.position = 0
        """The offset up to which rows were read."""

    def begin(self) -> str:
        """Seeks to the end of the topic; returns the token of the rows to read from now on."""
        token = uuid.uuid4().hex
        self._token, self.position = token.encode(), self.end()
        self._consumer.assign([TopicPartition(self._topic, PARTITION, self.position)])
        return token

    def end(self) -> int:
        """The end of the topic: every acknowledged row is before it."""
        try:
            partition = TopicPartition(self._topic, PARTITION)
            end: int = self._ends.get_watermark_offsets(partition, timeout=CALL_SECONDS)[1]
            return end
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from error

    def read(self, seconds: float) -> list[ChangedRow]:
        """The next rows as soon as there are any; none after `seconds`."""
        first = self._consumer.poll(seconds)
        messages = [] if first is None else [first, *self._consumer.consume(MAX_ROWS - 1, 0)]
        return [self._row(message) for message in messages if self._belongs(message)]

    def rest(self) -> Iterator[list[ChangedRow]]:
        """Every row that is acknowledged by now, in parts."""
        end, position, moved = self.end(), self.position, time.monotonic()
        while self.position < end:
            if self.position > position:
                position, moved = self.position, time.monotonic()
            elif time.monotonic() - moved > STALL_SECONDS:
                raise self._unavailable(KafkaError(KafkaError._TIMED_OUT))
            yield self.read(0.1)

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close()
        self._ends.close()

    def _belongs(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            self.position = (message.offset() or 0) + 1
            return (message.key() or b"").startswith(self._token)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # unread rows were deleted
            raise self._unavailable(error)
        return False  # the client recovers from any other error, or `rest` finds that it does not

    def _row(self, message: Message) -> ChangedRow:
        return ChangedRow((message.key() or b"")[len(self._token) :].decode(), message.value() or b"")

    def _unavailable(self, error: KafkaError) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"reading {self._topic}: {error.str()}",
            hint=f"check the broker at {self._bootstrap}; the next start makes unpublished rows again",
        )
