"""The rows of an aggregate in Real-Time Mode, on their way from Spark to Python.

In that mode no Python may stand in Spark's plan, so Spark writes the rows into a topic of the detector's own, and the
process that runs Spark reads them there. The topic is a pipe: whatever stands in it belongs to one query, which is made
again wherever it was not told. Each row bears the token of its query and others are passed over, so whoever still
writes without a right to it (Spark's sink knows no fence) reaches nobody.

A group's rows come anew with each of its events, so most of them were told long ago. Each bears its alert's id besides,
by which those are passed over as they are.
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

MOST = 1_000
"""So many rows are told at a time at most."""
PARTITION = 0
CALL_SECONDS, PATIENCE_SECONDS = 10.0, 60.0


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
    trigger=_record("place", partition="int", offset="long"),
    labels=_TEXTS,
    dedup_key="string",
    closes=_TIME,
    traceparent="string",
    arrived=_TIME,
)
"""The columns of `lozenge.alert`. Each may be null here: what must not be is looked into where it can be said."""
_PARSED = fastavro.parse_schema(_SCHEMA)


class Candidate(NamedTuple):
    """A row as it was read; its alert's id is "" where it is none that can be told."""

    alert_id: str
    value: bytes

    def row(self) -> Mapping[str, Any]:
        """The columns of `lozenge.alert`."""
        row: Any = fastavro.schemaless_reader(io.BytesIO(self.value), _PARSED, None)
        return dict(row)


def candidate_rows(alerts: DataFrame, identity: Identity, token: str) -> DataFrame:
    """The columns of Spark's Kafka sink for each row of `lozenge.alert` columns."""
    alert_id = ids.alert_id_column(identity.detector, identity.key, F.col("entity"), F.col("dedup_key"))
    return alerts.select(
        F.lit(identity.candidates).alias("topic"),
        F.lit(PARTITION).alias("partition"),
        F.concat(F.lit(token), F.coalesce(alert_id, F.lit(""))).cast("binary").alias("key"),
        to_avro(F.struct(*(field["name"] for field in _SCHEMA["fields"])), json.dumps(_SCHEMA)).alias("value"),
    )


class AggregateChangelog:
    """Reads what the query of the newest `begin` has written into `topic`; every method raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._topic, self._bootstrap = topic, kafka.bootstrap
        self._consumer = Consumer(
            kafka.client(group_id="lozenge-candidates", enable_auto_commit=False, auto_offset_reset="error")
        )
        # of the one that reads it would be answered behind a fetch that waits for rows, up to half a second later
        self._ends = Consumer(kafka.client(group_id="lozenge-candidates"))
        self._token = b""
        self.position = 0
        """The offset up to which it has read."""

    def begin(self) -> str:
        """Goes to the topic's end; the token of what is to be read from now on."""
        token = uuid.uuid4().hex
        self._token, self.position = token.encode(), self.end()
        self._consumer.assign([TopicPartition(self._topic, PARTITION, self.position)])
        return token

    def end(self) -> int:
        """The topic's end: every row that was acknowledged lies before it."""
        try:
            place = TopicPartition(self._topic, PARTITION)
            end: int = self._ends.get_watermark_offsets(place, timeout=CALL_SECONDS)[1]
            return end
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from error

    def read(self, seconds: float) -> list[Candidate]:
        """The next rows, as soon as there are some; none after so many `seconds`."""
        first = self._consumer.poll(seconds)
        messages = [] if first is None else [first, *self._consumer.consume(MOST - 1, 0)]
        return [self._candidate(message) for message in messages if self._passes(message)]

    def rest(self) -> Iterator[list[Candidate]]:
        """All that was acknowledged by now, in parts."""
        end, position, moved = self.end(), self.position, time.monotonic()
        while self.position < end:
            if self.position > position:
                position, moved = self.position, time.monotonic()
            elif time.monotonic() - moved > PATIENCE_SECONDS:
                raise self._unavailable(KafkaError(KafkaError._TIMED_OUT))
            yield self.read(0.1)

    def close(self) -> None:
        """Gives the connections back."""
        self._consumer.close()
        self._ends.close()

    def _passes(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            self.position = (message.offset() or 0) + 1
            return (message.key() or b"").startswith(self._token)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # what it has not read is deleted
            raise self._unavailable(error)
        return False  # of any other it recovers by itself, or `rest` finds that it does not

    def _candidate(self, message: Message) -> Candidate:
        return Candidate((message.key() or b"")[len(self._token) :].decode(), message.value() or b"")

    def _unavailable(self, error: KafkaError) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"reading {self._topic}: {error.str()}",
            hint=f"check the broker at {self._bootstrap}; a new start makes again what was not told",
        )
