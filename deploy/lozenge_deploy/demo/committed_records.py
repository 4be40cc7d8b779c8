"""Every committed record of a topic, by a Kafka client that shares no code with the stages (kafka-python)."""

from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings

SILENCE_MS = 10_000
BATCH = 20_000


def each_committed(kafka: KafkaSettings, topic: str, take: Callable[[Any], object]) -> int:
    """Calls `take` with every committed record up to the present end; returns their number.

    Raises BrokerUnavailable if the topic does not return the records up to its end.
    """
    consumer = KafkaConsumer(
        **kafka.kafka_python(),
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_partition_fetch_bytes=4 * 1024 * 1024,
        check_crcs=False,
    )
    try:
        assigned = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        ends = consumer.end_offsets(assigned)
        total = 0
        while any(consumer.position(each) < ends[each] for each in assigned):
            batches = consumer.poll(timeout_ms=SILENCE_MS, max_records=BATCH, update_offsets=True)
            if not batches and any(consumer.position(each) < ends[each] for each in assigned):
                raise BrokerUnavailable(
                    f"counting {topic}: no record for {SILENCE_MS // 1000} s before its end",
                    hint="a transaction may be open: wait until its writer ends it or its timeout expires",
                )
            for records in batches.values():
                total += len(records)
                for record in records:
                    take(record)
        return total
    finally:
        consumer.close()


def header(record: Any, name: str) -> str:
    """The text of a header of a record; "" if it has none of this name."""
    return next((value.decode() for key, value in record.headers if key == name), "")
