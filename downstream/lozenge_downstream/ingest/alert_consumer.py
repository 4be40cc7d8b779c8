"""Reads the alert topics of all detectors, from where the store stands.

The consumer group carries no truth, it only shares the partitions out among the notifiers of one store: on
assignment every partition is placed at the store's position (a new topic at its beginning), and the group's
offsets are committed afterwards for lag tools. A notifier that was killed has its partitions for some seconds
more, unless the next one has its name and sees it out of the group. With a fixed member id it could take them back
without, but it would be given the topics of the last one, and none made since.
"""

import time
from collections.abc import Sequence
from typing import NoReturn

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lozenge.contracts.record import Partition
from lozenge.errors import BrokerUnavailable, Fatal
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger
from lozenge_downstream.ingest.stale_members import remove_stale
from lozenge_downstream.model import APP, Record
from lozenge_downstream.store import Store, Transaction

IDLE_SECONDS = 0.2
COMMIT_SECONDS = 1.0
DISCOVER_MS = 2_000
BROKER_SECONDS = 10.0


class AlertConsumer:
    """The one consumer; used by one thread."""

    def __init__(self, kafka: KafkaSettings, store: Store, instance: str, session_seconds: float) -> None:
        """`instance` is this notifier's name; one that had it before is dead."""
        name = f"{APP}-{instance}"
        remove_stale(kafka, APP, name)
        self._store = store
        self._next: dict[Partition, int] = {}
        self._recorded: dict[Partition, int | None] = {}
        self._committed: dict[Partition, int] = {}
        self._committed_at = 0.0
        self._consumer = Consumer(
            kafka.client(
                group_id=APP,
                client_id=name,
                session_timeout_ms=int(session_seconds * 1000),
                heartbeat_interval_ms=int(session_seconds * 1000 / 3),
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_auto_offset_store=False,
                # An offset that the topic no longer (or not yet again) has must be seen, not skipped.
                auto_offset_reset="error",
                enable_partition_eof=True,
                topic_metadata_refresh_interval_ms=DISCOVER_MS,
                partition_assignment_strategy="cooperative-sticky",
            )
        )
        self._consumer.subscribe(
            [kafka.topics.alerts_pattern], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def read(self, limit: int) -> list[Record]:
        """Up to `limit` records that the store does not have; empty after a short wait without any."""
        try:
            messages = self._consumer.consume(1, IDLE_SECONDS)
            if messages:
                messages += self._consumer.consume(limit - 1, 0)  # what is here already: the first waits for nobody
        except KafkaException as error:
            self._fail(error.args[0])
        return [record for message in messages if (record := self._accept(message))]

    def record(self, records: Sequence[Record], t: Transaction) -> None:
        """Moves the store's positions behind `records`; raises Fenced if another notifier read on from there."""
        ends = {(r.topic, r.partition): r.offset + 1 for r in records}
        for partition, end in ends.items():
            t.positions.move(partition, self._recorded[partition], end)
            self._recorded[partition] = end

    def commit(self) -> None:
        """Tells the group how far the store is, now and then; call it when all that was read is recorded."""
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
        """Commits what is recorded and leaves."""
        self._committed_at = 0.0
        self.commit()
        self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        placed = []
        with self._store.reading() as t:
            for p in partitions:
                position = self._recorded[p.topic, p.partition] = t.positions.of((p.topic, p.partition))
                self._next[p.topic, p.partition] = position or 0
                placed.append(TopicPartition(p.topic, p.partition, OFFSET_BEGINNING if position is None else position))
        consumer.incremental_assign(placed)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # What was read of them is recorded: nothing is read and not yet recorded while the group is asked.
        self._committed_at = 0.0
        self.commit()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            for known in (self._next, self._recorded, self._committed):
                known.pop((p.topic, p.partition), None)
        consumer.incremental_unassign(partitions)

    def _accept(self, message: Message) -> Record | None:
        partition = str(message.topic()), int(message.partition() or 0)
        error, offset = message.error(), int(message.offset() or 0)
        if error is not None:
            self._handle(error, partition, offset)
            return None
        # Reading several may have given a partition away in between: what came of it is read by who has it now.
        if partition not in self._recorded or offset < self._next.get(partition, 0):
            return None
        self._next[partition] = offset + 1
        return Record(*partition, offset, message.key(), message.value(), _headers(message))

    def _handle(self, error: KafkaError, partition: Partition, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # Past the transaction markers, so that lag tools show 0 and not 1.
            self._next[partition] = max(offset, self._next.get(partition, 0))
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._start_over(partition)
        elif error.fatal() or error.code() == KafkaError._FATAL:
            self._fail(error)

    def _fail(self, error: KafkaError) -> NoReturn:
        raise Fatal(f"reading alerts: {error.str()}", hint="is a second notifier running with another store?")

    def _start_over(self, partition: Partition) -> None:
        """The topic no longer has the store's position: retention overtook us, or the topic was made anew."""
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*partition), BROKER_SECONDS)
        except KafkaException as error:
            raise BrokerUnavailable(f"reading {partition[0]}[{partition[1]}]: {error.args[0].str()}") from error
        lost = max(low - self._next[partition], 0)
        logger().error(
            "position is gone",
            topic=partition[0],
            partition=partition[1],
            offset=self._next[partition],
            low=low,
            high=high,
            lost=lost,
        )
        with self._store.transaction() as t:
            t.positions.move(partition, self._recorded[partition], low)
        self._next[partition] = self._recorded[partition] = low
        # librdkafka has given the partition up and refuses to seek in it: assign it again.
        self._consumer.incremental_unassign([TopicPartition(*partition)])
        self._consumer.incremental_assign([TopicPartition(*partition, low)])


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    # The client's type also allows the forms that only producers pass in.
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return [(name, value) for name, value in pairs if not isinstance(value, str)]
