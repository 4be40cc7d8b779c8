"""Reads the alert topics of all detectors, from the store's positions.

The consumer group only assigns the partitions to the notifiers of one store. Each assigned partition starts at the
store's position, a new topic at its beginning; the group's offsets are committed afterwards, for lag tools. A killed
notifier keeps its partitions for some seconds, unless the next one has its name and removes it from the group. A fixed
member id would avoid the removal, but the broker would assign the former topics, and none that were created since.
"""

import time
from collections.abc import Sequence
from typing import NoReturn

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.record import Partition
from lozenge.contracts.topic_patterns import alert_topics
from lozenge.errors import BrokerUnavailable, Fatal
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_ids
from lozenge.process.logging import logger
from lozenge_downstream.ingest.stale_members import remove_stale_members
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store import Store, Transaction

IDLE_SECONDS = 0.2
COMMIT_SECONDS = 1.0
DISCOVER_MS = 2_000
BROKER_SECONDS = 10.0


class AlertConsumer:
    """The consumer; used by one thread."""

    def __init__(self, kafka: KafkaSettings, store: Store, instance: str, session_seconds: float) -> None:
        """`instance` is this notifier's name; an earlier process of that name is dead."""
        name = f"{DOWNSTREAM}-{instance}"
        remove_stale_members(kafka, DOWNSTREAM, name)
        self._kafka, self._store = kafka, store
        self._next: dict[Partition, int] = {}
        self._recorded: dict[Partition, int | None] = {}
        self._committed: dict[Partition, int] = {}
        self._committed_at = 0.0
        self._consumer = Consumer(
            kafka.client(
                group_id=DOWNSTREAM,
                client_id=name,
                session_timeout_ms=int(session_seconds * 1000),
                heartbeat_interval_ms=int(session_seconds * 1000 / 3),
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_auto_offset_store=False,
                # an offset that the topic does not have must be an error, not a silent reset
                auto_offset_reset="error",
                enable_partition_eof=True,
                topic_metadata_refresh_interval_ms=DISCOVER_MS,
                partition_assignment_strategy="cooperative-sticky",
            )
        )
        self._consumer.subscribe(
            [alert_topics(kafka.topics)], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def read(self, limit: int) -> list[ReceivedRecord]:
        """Up to `limit` records that the store does not have; empty after a short wait without any."""
        try:
            messages = self._consumer.consume(1, IDLE_SECONDS)
            if messages:
                messages += self._consumer.consume(
                    limit - 1, 0
                )  # what is fetched already: the first record waits for no other
        except KafkaException as error:
            self._fail(error.args[0])
        return [record for message in messages if (record := self._accept(message))]

    def record(self, records: Sequence[ReceivedRecord], t: Transaction) -> None:
        """Moves the store's positions past `records`; raises Fenced if another notifier has moved them."""
        ends = {(r.topic, r.partition): r.offset + 1 for r in records}
        for partition, end in ends.items():
            t.positions.move(partition, self._recorded[partition], end)
            self._recorded[partition] = end

    def commit(self) -> None:
        """Commits the recorded positions to the group, at most once a second. All that was read must be recorded."""
        if time.monotonic() - self._committed_at < COMMIT_SECONDS:
            return
        moved = {partition: end for partition, end in self._next.items() if self._committed.get(partition) != end}
        if moved:
            self._consumer.commit(
                offsets=[TopicPartition(*partition, end) for partition, end in moved.items()], asynchronous=True
            )
            self._committed |= moved
        self._committed_at = time.monotonic()

    def lag(self) -> int:
        """Records in the assigned partitions that were not read yet, as of the last fetch."""
        partitions = [
            (partition, self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True))
            for partition in self._next
        ]
        return sum(max(0, high - self._next[partition]) for partition, (_, high) in partitions)

    def close(self) -> None:
        """Commits what is recorded and leaves the group."""
        self._committed_at = 0.0
        self.commit()
        self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        starts = []
        ids = topic_ids(self._kafka, sorted({p.topic for p in partitions}))
        with self._store.transaction() as t:
            for topic, id in ids.items():
                if t.positions.are_of_another(topic, id):
                    logger().error(f"{topic} was deleted and created again; the notifier reads it from its beginning")
            for p in partitions:
                position = self._recorded[p.topic, p.partition] = t.positions.of((p.topic, p.partition))
                self._next[p.topic, p.partition] = position or 0
                starts.append(TopicPartition(p.topic, p.partition, OFFSET_BEGINNING if position is None else position))
        consumer.incremental_assign(starts)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # this is called within a read, and all that was read before is recorded
        self._committed_at = 0.0
        self.commit()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            for known in (self._next, self._recorded, self._committed):
                known.pop((p.topic, p.partition), None)
        consumer.incremental_unassign(partitions)

    def _accept(self, message: Message) -> ReceivedRecord | None:
        partition = str(message.topic()), int(message.partition() or 0)
        error, offset = message.error(), int(message.offset() or 0)
        if error is not None:
            self._handle(error, partition, offset)
            return None
        # a partition may be revoked during a read: its new owner reads these records
        if partition not in self._recorded or offset < self._next.get(partition, 0):
            return None
        self._next[partition] = offset + 1
        return ReceivedRecord(*partition, offset, message.key(), message.value(), _headers(message))

    def _handle(self, error: KafkaError, partition: Partition, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # past the transaction markers, so that lag tools show 0 and not 1
            self._next[partition] = max(offset, self._next.get(partition, 0))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._reset(partition)
        elif error.fatal() or error.code() == KafkaError._FATAL:
            self._fail(error)

    def _fail(self, error: KafkaError) -> NoReturn:
        raise Fatal(f"reading alerts: {error.str()}", hint="is a second notifier running with another store?")

    def _reset(self, partition: Partition) -> None:
        """The topic does not have the store's position: retention has deleted it, or the topic was created again."""
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*partition), BROKER_SECONDS)
        except KafkaException as error:
            raise BrokerUnavailable(f"reading {partition[0]}[{partition[1]}]: {error.args[0].str()}") from error
        wanted = self._next[partition]
        gone = f"{low - wanted} alerts {wanted}-{low - 1} were deleted before they were read"
        why = gone if wanted < low else f"{wanted} is next, but the topic ends at {high}: it was shortened"
        logger().error(
            f"{partition[0]} partition {partition[1]}: {why}; the notifier resumes at {low}",
            hint="a topic has to keep its records for longer than a notifier may be down",
        )
        with self._store.transaction() as t:
            t.positions.move(partition, self._recorded[partition], low)
        self._next[partition] = self._recorded[partition] = low
        # librdkafka stops such a partition and refuses to seek in it: assign it again
        self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.incremental_assign([TopicPartition(*partition, low)])


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    # the client's type also allows forms that only producers pass
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return [(name, value) for name, value in pairs if not isinstance(value, str)]
