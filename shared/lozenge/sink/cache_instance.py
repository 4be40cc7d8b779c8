"""A running cache: the latest record of each key, from a topic into a store which also has the position.

Any number of instances share the partitions by Kafka's group protocol. A write has entries and the position that
they reach, as one, and is refused if the store has another position than this process knows. Then another process has
written, or the server has lost its last seconds: in both cases the partition continues where the store is.

The consumer group follows once a second, in a transaction with the dead letters of those offsets. A process that is
killed in between leaves the group behind the store; the next one makes those dead letters first.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lozenge.cache.cached_topic import CachedTopic
from lozenge.cache.entries import CacheEntry, CacheStore, CacheUnavailable, latest
from lozenge.errors import DecodeError, TopicError
from lozenge.kafka.followed_release import StopRequest
from lozenge.kafka.group_membership import Membership
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions, topic_id
from lozenge.kafka.topic_reader import read, reader
from lozenge.kafka.writers import TransactionalWriter
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.process.logging import logger
from lozenge.process.retries import retry
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.sink.cache_partition import OwnedPartition, begin, pieces
from lozenge.sink.dead_letter_records import dead_letter
from lozenge.sink_declarations.cache_sink import CacheSink

STORE_SECONDS = 60.0
"""How long a call of a server that is away is tried again, before the process ends and is started again."""
_GROUP_SECONDS, _EXPIRE_SECONDS = 1.0, 60.0
_POLL_SECONDS = 0.1
T = TypeVar("T")


class CacheInstance:
    """The partitions of one process; used by one thread."""

    def __init__(
        self,
        sink: CacheSink,
        topic: CachedTopic,
        store: CacheStore,
        kafka: KafkaSettings,
        metrics: SinkMetrics,
        stop: StopRequest,
    ) -> None:
        """Raises BrokerUnavailable."""
        self._sink, self._topic, self._store, self._kafka = sink, topic, store, kafka
        self._metrics = metrics
        self._topic_id = topic_id(kafka, topic.name)
        self._group = ConsumerGroup(kafka, sink.app, topic.name, partitions(kafka)[topic.name])
        self._owned: dict[int, OwnedPartition] = {}
        self._writers: dict[int, TransactionalWriter] = {}
        self._grouped_at = self._expired_at = time.monotonic()
        self._stop = stop

    def run(self) -> None:
        """Caches until it is to stop, then moves the group to where it has come.

        Raises BrokerUnavailable, CacheUnavailable, ConfigError for a store that refuses, Fenced, and TopicError if the
        topic is created again; a restart continues.
        """
        membership = Membership(self._kafka, self._sink.app, [self._topic.name])
        membership.join()
        try:
            with reader(self._kafka, self._topic.name, doing="caching") as consumer:
                while not self._stop.requested:
                    held = frozenset(partition for _, partition in membership.settle())
                    self._take(consumer, held)
                    while not self._stop.requested and {partition for _, partition in membership.partitions} == held:
                        self._step(consumer)
                    self._move_group()
        finally:
            self._group.close()
            membership.leave()

    def _take(self, consumer: Consumer, held: frozenset[int]) -> None:
        """Begins with the partitions that are new, and leaves those that are gone."""
        self._owned = {partition: each for partition, each in self._owned.items() if partition in held}
        self._writers = {partition: each for partition, each in self._writers.items() if partition in held}
        new = sorted(held - self._owned.keys())
        for partition in new:
            self._writers[partition] = TransactionalWriter(self._kafka, f"{self._sink.app}-{partition}")
            self._writers[partition].fence()  # what the group has is final then
        self._open(new)
        self._assign(consumer)
        if held:
            logger().info("caches its partitions", partitions=sorted(held))

    def _open(self, partitions_: Collection[int]) -> None:
        """Reads where these partitions are, and makes the dead letters that a killed process has left."""
        if not partitions_:
            return
        bounds, stored = self._group.bounds(), self._retrying(self._store.positions)
        group = self._group.read(partitions_).offsets
        for partition in partitions_:
            found = begin(stored.get(partition), self._topic_id, bounds[partition])
            if found.problem:
                logger().error(f"{self._topic.name} {partition}: {found.problem}")
            reported = min(group[partition], bounds[partition][1])
            each = self._owned[partition] = OwnedPartition(stored.get(partition), found.position, reported)
            for message in self._between(partition, reported, found.position.offset):
                self._entry(each, message)

    def _between(self, partition: int, start: int, end: int) -> Iterator[Message]:
        if start >= end:
            return iter(())
        records = read(self._kafka, self._topic.name, {partition: start}, doing="caching")
        return takewhile(lambda message: (message.offset() or 0) < end, records)

    def _assign(self, consumer: Consumer) -> None:
        name = self._topic.name
        consumer.assign([TopicPartition(name, p, each.position.offset) for p, each in self._owned.items()])

    def _step(self, consumer: Consumer) -> None:
        """Writes what has come, and does what is due."""
        found: dict[int, list[Message]] = {}
        ends: dict[int, int] = {}
        for message in consumer.consume(self._sink.rows, _POLL_SECONDS):
            error, partition = message.error(), message.partition() or 0
            if error is None:
                found.setdefault(partition, []).append(message)
                ends[partition] = (message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[partition] = message.offset() or 0  # behind markers of transactions, which are no records
            else:
                raise KafkaException(error)
        written = [
            all(self._write(partition, part, reached) for part, reached in pieces(found.get(partition, ()), end))
            for partition, end in ends.items()
        ]
        now = time.monotonic()
        if now - self._grouped_at >= _GROUP_SECONDS:
            self._move_group()
            written.append(self._agrees_with_the_store())
        if not all(written):
            self._assign(consumer)
        if now - self._expired_at >= _EXPIRE_SECONDS:
            self._expired_at = now
            self._retrying(self._store.delete_expired)

    def _write(self, partition: int, messages: Sequence[Message], end: int) -> bool:
        """Writes the entries of `messages`; false if the store is elsewhere, where the partition continues."""
        each, began = self._owned[partition], time.monotonic()
        if end < each.position.offset:
            raise TopicError(
                f"caching {self._topic.name} {partition}: it begins again at {end}, and was read to "
                f"{each.position.offset}",
                hint="the topic was created again; the next start caches it from its beginning",
            )
        reached = each.reached(end)
        if reached == each.stored:
            return True
        before = len(each.dead_letters)
        entries = latest(entry for message in messages if (entry := self._entry(each, message)) is not None)
        if not self._retrying(lambda: self._store.write(partition, each.stored, reached, entries)):
            self._open_again([partition])
            return False
        each.stored = each.position = reached
        if messages:
            self._metrics.records(len(messages))
            self._metrics.emitted(len(entries))
            self._metrics.written(sum(len(entry.value or "") for entry in entries))
            self._metrics.dead_letters(len(each.dead_letters) - before, "decode")
            self._metrics.batch(time.monotonic() - began)
            self._metrics.latency(max(0.0, time.time() - messages[-1].timestamp()[1] / 1000))
        return True

    def _agrees_with_the_store(self) -> bool:
        """False if the server has lost what it had of a partition: no record need come for the cache to notice."""
        stored = self._retrying(self._store.positions)
        lost = [partition for partition, each in self._owned.items() if stored.get(partition) != each.stored]
        if lost:
            self._open_again(lost)
        return not lost

    def _open_again(self, lost: Collection[int]) -> None:
        logger().warning("the store is at other positions, and the cache continues there", partitions=sorted(lost))
        self._open(lost)

    def _entry(self, each: OwnedPartition, message: Message) -> CacheEntry | None:
        """The entry of a record; one that has none becomes a dead letter, unless it is one already."""
        offset = message.offset() or 0
        try:
            return self._topic.entry(message.key(), message.value(), offset, message.timestamp()[1])
        except DecodeError as error:
            if offset >= each.reported:
                each.dead_letters.append(dead_letter(self._kafka, self._sink.app, message, error))
            return None

    def _move_group(self) -> None:
        """Moves the group to where the store is, with the dead letters until there."""
        self._grouped_at = time.monotonic()
        for partition, each in self._owned.items():
            offset = each.position.offset
            if each.stored == each.position and (offset > each.reported or each.dead_letters):
                self._writers[partition].commit(
                    each.dead_letters, self._group, {partition: max(offset, each.reported)}, CommitMetadata()
                )
                each.dead_letters, each.reported = [], max(offset, each.reported)
        ends = self._group.ends(list(self._owned))
        if ends is not None:
            self._metrics.lag(
                sum(max(0, ends[(self._topic.name, p)] - o.position.offset) for p, o in self._owned.items())
            )

    def _retrying(self, call: Callable[[], T]) -> T:
        def again(error: Exception) -> bool:
            return isinstance(error, CacheUnavailable) and not self._stop.requested

        return retry(call, again, seconds=STORE_SECONDS, pause=0.5)
