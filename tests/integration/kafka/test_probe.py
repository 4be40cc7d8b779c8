"""A probe shows what another client shows: all that is committed, once, and nothing of transactions that are not."""

import uuid

import pytest
from confluent_kafka import Producer

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.clients import commit, group_offsets, read_by_kafka_python, trim
from tests.integration.probe import Record, probe

pytestmark = pytest.mark.integration
PARTITIONS = 3


@pytest.fixture
def topic(kafka: KafkaSettings) -> str:
    name = f"probe-{uuid.uuid4().hex[:8]}"
    ensure_topics(kafka, [Topic(name, PARTITIONS)])
    return name


def writer(kafka: KafkaSettings, topic: str) -> Producer:
    producer = Producer(kafka.client(transactional_id=f"{topic}-writer"))
    producer.init_transactions(30)
    return producer


def begin(producer: Producer, topic: str, numbers: range) -> None:
    """Opens a transaction of these numbers, which the broker has."""
    producer.begin_transaction()
    for n in numbers:
        producer.produce(topic, str(n).encode(), b"key", n % PARTITIONS, headers={"number": str(n).encode()})
    assert producer.flush(30) == 0


def numbers(records: list[Record]) -> list[int]:
    return sorted(int(record.value) for record in records)


def test_it_has_all_that_is_committed_and_wakes_for_what_comes(kafka: KafkaSettings, topic: str) -> None:
    assert probe(kafka, topic).read_to_end() == []
    producer = writer(kafka, topic)
    begin(producer, topic, range(300))
    producer.commit_transaction()
    begin(producer, topic, range(300, 310))
    producer.abort_transaction()
    assert numbers(probe(kafka, topic).read_to_end()) == [*range(300)]
    begin(producer, topic, range(310, 320))
    assert numbers(probe(kafka, topic).read_to_end()) == [*range(300)]
    producer.commit_transaction()
    found = probe(kafka, topic).wait(lambda records: len(records) >= 310, "the last transaction")
    assert found == probe(kafka, topic).read_to_end()
    other = read_by_kafka_python(kafka, topic)
    assert sorted(found) == sorted(
        Record(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in other
    )


def test_it_begins_where_it_is_asked_to_or_the_topic_does(kafka: KafkaSettings, topic: str) -> None:
    producer = writer(kafka, topic)
    begin(producer, topic, range(9))
    producer.commit_transaction()
    assert numbers(probe(kafka, topic, {0: 1, 1: 2, 2: 4}).read_to_end()) == [3, 6, 7]
    trim(kafka, topic, {0: 2, 1: 0, 2: 1})
    assert numbers(probe(kafka, topic).read_to_end()) == [1, 4, 5, 6, 7, 8]


def test_offsets_are_committed_for_a_group_and_read_again(kafka: KafkaSettings, topic: str) -> None:
    assert group_offsets(kafka, topic, topic) == {}
    assert commit(kafka, topic, topic, {0: 7, 2: 1})
    assert group_offsets(kafka, topic, topic) == {0: (7, ""), 2: (1, "")}
