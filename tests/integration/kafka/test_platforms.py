"""Two platforms share a broker: neither reads, moves or fences anything of the other."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from lozenge.contracts.record import Record
from lozenge.errors import Fenced, TopicError
from lozenge.kafka import schema_topic
from lozenge.kafka.group_offsets import ConsumerGroup, committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics, partitions
from lozenge.kafka.topic_reader import retained
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.commit_metadata import CommitMetadata
from tests.brokers import Broker, own_platform
from tests.streams import AUTH, every_topic


@pytest.fixture
def other(broker: Broker) -> Iterator[KafkaSettings]:
    with own_platform(broker, partitions=3) as platform:
        yield platform


def test_two_platforms_share_a_broker(kafka: KafkaSettings, other: KafkaSettings) -> None:
    counts = partitions(kafka)
    assert (counts[kafka.topics.events("auth")], counts[other.topics.events("auth")]) == (4, 3)

    schema_topic.announce(kafka, [AUTH.event_schema])
    assert schema_topic.learn(kafka, AUTH.event_schema) == [AUTH.event_schema]
    assert schema_topic.learn(other, AUTH.event_schema) == []

    ours, theirs = TransactionalWriter(kafka, "app"), TransactionalWriter(other, "app")
    ours.fence()
    theirs.fence()  # one id each, so neither takes the other's
    ours.write([Record(kafka.topics.events("auth"), 0, b"k", b"ours")])
    theirs.write([Record(other.topics.events("auth"), 0, b"k", b"theirs")])
    assert [m.value() for m in retained(kafka, kafka.topics.events("auth"), 4)] == [b"ours"]
    assert [m.value() for m in retained(other, other.topics.events("auth"), 3)] == [b"theirs"]

    successor = TransactionalWriter(kafka, "app")
    successor.fence()
    with pytest.raises(Fenced):
        ours.write([Record(kafka.topics.events("auth"), 0, b"k", b"late")])
    theirs.write([Record(other.topics.events("auth"), 0, b"k", b"still theirs")])

    with closing(ConsumerGroup(kafka, "app", kafka.topics.events("auth"), 4)) as group:
        successor.commit([], group, {0: 1}, CommitMetadata(1))
    assert [p.offset for p in committed(kafka, "app")] == [1]
    assert committed(other, "app") == []


def test_a_platform_with_another_number_of_partitions_is_refused(kafka: KafkaSettings) -> None:
    wider = kafka.model_copy(update={"partitions": 64})
    events = [topic for topic in every_topic(wider.topics) if topic.name == wider.topics.events("auth")]
    with pytest.raises(TopicError, match="has 4 partitions, its contract says 64"):
        check_topics(wider, events)
