"""A topic is read to its end, or for the first record of each partition."""

import pytest
from confluent_kafka import Producer

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import read

pytestmark = pytest.mark.integration


def test_the_first_record_of_each_partition_is_found_where_there_is_one(kafka: KafkaSettings) -> None:
    topic = "read-the-first"
    ensure_topics(kafka, [Topic(topic, 4)])
    producer = Producer(kafka.client(transactional_id=topic))
    producer.init_transactions()
    producer.begin_transaction()
    for partition, number in ((0, 0), (0, 1), (0, 2), (1, 3), (1, 4)):  # nothing in 2
        producer.produce(topic, str(number).encode(), partition=partition)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce(topic, b"taken back", partition=3)
    producer.flush()
    producer.abort_transaction()

    def found(starts: dict[int, int], *, first: bool) -> list[tuple[int | None, bytes | None]]:
        return sorted((m.partition(), m.value()) for m in read(kafka, topic, starts, first=first))

    starts = {0: 1, 1: 0, 2: 0, 3: 0}
    assert found(starts, first=True) == [(0, b"1"), (1, b"3")]
    assert found(starts, first=False) == [(0, b"1"), (0, b"2"), (1, b"3"), (1, b"4")]
