"""One producer and one admin client per broker for the tests of a file, and what they say about offsets."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from lozenge.kafka.settings import KafkaSettings

T = TypeVar("T")
CALL_SECONDS = 10.0
DEADLINE_SECONDS = 60.0
SETTLING_SECONDS = 0.5


class Clients(NamedTuple):
    """Threads share them, as librdkafka allows. A topic's `partitions` are requested once.

    A record that the broker refuses fails the `flush` or `poll` of `producer`.
    `readers` has a consumer for each group of which offsets are read; none of them ever joins its group.
    """

    producer: Producer
    admin: AdminClient
    partitions: dict[str, list[int]]
    readers: dict[str, Consumer]


_CLIENTS: dict[str, Clients] = {}


def clients(kafka: KafkaSettings) -> Clients:
    """Those of a broker, which the first call makes."""
    if kafka.bootstrap not in _CLIENTS:
        _CLIENTS[kafka.bootstrap] = Clients(
            Producer({**kafka.client(linger_ms=1), "on_delivery": _delivered}), AdminClient(kafka.client()), {}, {}
        )
    return _CLIENTS[kafka.bootstrap]


def forget_clients() -> None:
    """The next call of `clients` makes new ones: another broker may get the port of one that has ended."""
    for shared in _CLIENTS.values():
        for reader in shared.readers.values():
            reader.close()
    _CLIENTS.clear()


def _delivered(error: KafkaError | None, _record: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def limit_record_size(kafka: KafkaSettings, topic: str, size: int) -> None:
    """Records of `topic` have at most `size` bytes from now on.

    The controller answers before the broker obeys. So this writes records, all aborted, until it does.
    """
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    config = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    clients(kafka).admin.incremental_alter_configs([config])[config].result(30)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while _accepts(kafka, topic, size + 1000) or not _accepts(kafka, topic, max(1, size - 1000)):
        assert time.monotonic() < deadline, f"{topic} still takes records of another size"
        time.sleep(0.05)


def _accepts(kafka: KafkaSettings, topic: str, size: int) -> bool:
    refused: list[KafkaError] = []
    producer = Producer(kafka.client(transactional_id=f"limit of {topic}", message_max_bytes=2 * size + 10_000))
    producer.init_transactions(CALL_SECONDS)
    producer.begin_transaction()
    producer.produce(
        topic, os.urandom(size), partition=0, on_delivery=lambda error, _: refused.append(error) if error else None
    )
    producer.flush(CALL_SECONDS)
    producer.abort_transaction(CALL_SECONDS)
    return not refused


def settled_ends(kafka: KafkaSettings, topic: str) -> dict[int, int]:
    """The same once no transaction hides what is written now, or after `SETTLING_SECONDS`.

    A producer's commit returns when the coordinator has decided it; readers see it when the markers are written.
    """
    written = ends(kafka, topic, IsolationLevel.READ_UNCOMMITTED)
    deadline = time.monotonic() + SETTLING_SECONDS
    while True:
        found = ends(kafka, topic)
        if all(found[p] >= end for p, end in written.items()) or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


def ends(kafka: KafkaSettings, topic: str, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> dict[int, int]:
    """Where the committed records of each partition end: before the first open transaction."""
    admin = clients(kafka).admin

    def ask() -> dict[int, int]:
        latest = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in _partitions(kafka, topic)}  # type: ignore[no-untyped-call]
        answers = admin.list_offsets(latest, isolation_level=level, request_timeout=CALL_SECONDS)
        return {partition.partition: answer.result(CALL_SECONDS).offset for partition, answer in answers.items()}

    return _patiently(ask)


def _partitions(kafka: KafkaSettings, topic: str) -> list[int]:
    shared = clients(kafka)
    if topic not in shared.partitions:
        found = shared.admin.list_topics(topic, CALL_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        shared.partitions[topic] = list(found.partitions)
    return shared.partitions[topic]


def read_by_kafka_python(kafka: KafkaSettings, topic: str) -> list[Any]:
    """Every committed record of `topic`, by a client that shares no code with those of the platform and of probes."""
    consumer = KafkaConsumer(**kafka.kafka_python(), isolation_level="read_committed", enable_auto_commit=False)
    try:
        parts = [KafkaPythonPartition(topic, partition) for partition in ends(kafka, topic)]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        until = consumer.end_offsets(parts)  # the first open transaction ends a partition
        found: list[Any] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(consumer.position(part) < end for part, end in until.items()):
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            for records in consumer.poll(100).values():
                found += records
        return found
    finally:
        consumer.close()


def trim(kafka: KafkaSettings, topic: str, starts: Mapping[int, int]) -> None:
    """Deletes the records before `starts` (offset by partition)."""
    partitions = [TopicPartition(topic, partition, offset) for partition, offset in starts.items()]
    for answer in clients(kafka).admin.delete_records(partitions).values():
        answer.result(CALL_SECONDS)


def commit(kafka: KafkaSettings, group: str, topic: str, offsets: Mapping[int, int]) -> bool:
    """Whether the group's coordinator has taken these offsets; a new group's may be loading, a member be leaving."""
    partitions = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    name = kafka.topics.prefixed(group)
    asked = [ConsumerGroupTopicPartitions(name, partitions)]
    try:
        done = clients(kafka).admin.alter_consumer_group_offsets(asked)[name].result(CALL_SECONDS).topic_partitions
    except KafkaException:
        return False
    return all(partition.error is None for partition in done)


def group_offsets(kafka: KafkaSettings, group: str, topic: str) -> dict[int, tuple[int, str]]:
    """(offset, metadata) by partition, as any lag tool sees them: an open transaction has moved nothing yet."""
    shared = clients(kafka)
    settings = kafka.client(group_id=group, enable_auto_commit=False, isolation_level="read_uncommitted")
    name = kafka.topics.prefixed(group)
    if name not in shared.readers:
        shared.readers[name] = Consumer(settings)
    reader = shared.readers[name]

    def ask() -> dict[int, tuple[int, str]]:
        asked = [TopicPartition(topic, partition) for partition in _partitions(kafka, topic)]
        found = reader.committed(asked, timeout=CALL_SECONDS)
        for partition in found:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return {p.partition: (p.offset, (p.metadata or "").rstrip("\0")) for p in found if p.offset >= 0}

    return _patiently(ask)


def _patiently(ask: Callable[[], T]) -> T:
    """`ask`, again while the broker starts, elects leaders, or loads the group's coordinator."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            again = error.args[0].retriable() or error.args[0].code() == KafkaError._NOENT  # no leaders yet
            if not again or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
