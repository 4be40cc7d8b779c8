"""The plain loop that anybody would write to read a topic into an Arrow table; measured, and used without a JVM."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition

from lozenge.archive.archived_topics import ArchivedTopic
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.errors import DecodeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import reader
from lozenge.moments import from_milliseconds
from lozenge.sink.decoded_batch import DecodedBatch, Ranges, UnreadableRecord
from tests.streams import AUTH


class PlainLoop:
    """Reads events one by one, and decodes each into a dictionary."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka, self._codec = kafka, Codec(AUTH.event_schema)

    def read(self, topic: ArchivedTopic, ranges: Ranges, buckets: int) -> DecodedBatch:
        """Every record is a row or unreadable."""
        rows: list[dict[str, Any]] = []
        unreadable: list[UnreadableRecord] = []
        now, left = datetime.now(UTC), {p: end for p, (_, end) in ranges.items()}
        with reader(self._kafka, topic.topic) as consumer:
            consumer.assign([TopicPartition(topic.topic, p, start) for p, (start, _) in ranges.items()])
            while left:
                for message in consumer.consume(10_000, 0.05):
                    partition, offset = message.partition() or 0, message.offset() or 0
                    if partition not in left:
                        continue
                    if message.error() is not None or offset >= left[partition]:
                        del left[partition]
                        continue
                    at = from_milliseconds(message.timestamp()[1])
                    place = {"partition": partition, "offset": offset, "timestamp": at, "ingested_at": now}
                    place |= {"day": at.date(), "bucket": partition_of(message.key() or b"", buckets)}
                    try:
                        rows.append(place | self._codec.decode(message.value()))
                    except DecodeError as error:
                        unreadable.append(UnreadableRecord(partition, offset, error.message))
        return DecodedBatch(pa.Table.from_pylist(rows, schema=topic.columns), tuple(unreadable))
