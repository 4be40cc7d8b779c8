"""Publishes the outbox to Kafka in order of `seq`, each record exactly once.

A Kafka transaction commits first, then the rows are marked as published. A crash between the two leaves rows unmarked
that are in Kafka. So each start reads the last `seq` of each partition and marks its rows. Of several notifiers of one
store, the holder of the lease publishes. The transactional id fences a notifier that has lost the lease unawares.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.dead_letters import TRUNCATED
from lozenge.contracts.topics import DEAD_LETTER_BYTES, Topics
from lozenge.errors import BrokerUnavailable, Fatal
from lozenge.kafka.settings import SILENT, KafkaSettings
from lozenge.kafka.topic_reader import bounds, tail
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge.process.logging import logger
from lozenge_downstream.dead_letter_encoder import truncate
from lozenge_downstream.model import Outgoing
from lozenge_downstream.store import Store

SEQ = "lozenge-seq"
"""Header with the record's number in its output partition."""

BATCH = 500
POLL_SECONDS = 0.5
MIN_INTERVAL_SECONDS = 0.02
"""The shortest time between the starts of two transactions; the first one after a pause starts at once."""
RETRY_SECONDS = 1.0
BROKER_SECONDS = 10.0
TRANSACTION_MS = 15_000
FEW_RECORDS = 4
"""How many offsets a recovery read goes back first: a dead letter may have some megabytes."""


def outputs(topics: Topics) -> tuple[str, ...]:
    """The topics that a notifier writes."""
    return topics.notifications, topics.feedback, topics.dead_letters(DOWNSTREAM)


class OutboxRelay:
    """Publishes while it `may`. It counts notifications and their latency from detection to commit."""

    def __init__(self, kafka: KafkaSettings, store: Store, metrics: NotifierMetrics, may: Callable[[], bool]) -> None:
        self._kafka, self._store, self._metrics, self._may = kafka, store, metrics, may
        self._wakeup = threading.Event()
        self._singly = 0

    def wake(self) -> None:
        """Signals the relay, from any thread, that the outbox has new records."""
        self._wakeup.set()

    def run(self, stop: threading.Event) -> None:
        """Publishes until `stop` is set. It survives a lost broker, and waits while another notifier publishes."""
        while not stop.is_set():
            if not self._may():
                stop.wait(POLL_SECONDS)
                continue
            try:
                producer = self._producer()
                self._recover()
                while self._may() and not stop.is_set():
                    begun = time.monotonic()
                    if self._publish(producer):
                        stop.wait(begun + MIN_INTERVAL_SECONDS - time.monotonic())
            except (KafkaException, BrokerUnavailable) as error:
                logger().warning("relay restarts", error=str(error))
                stop.wait(RETRY_SECONDS)

    def _producer(self) -> Producer:
        producer = Producer(
            self._kafka.client(
                transactional_id="downstream-relay",
                transaction_timeout_ms=TRANSACTION_MS,
                linger_ms=0,
                message_max_bytes=DEAD_LETTER_BYTES,
                compression_type="gzip",  # every client reads it without another library
            ),
            logger=SILENT,
        )
        producer.init_transactions(BROKER_SECONDS)
        return producer

    def _recover(self) -> None:
        """Marks what an earlier relay published and could not mark."""
        for last in self._last_published():
            topic, partition, seq = str(last.topic()), int(last.partition() or 0), seq_of(last) or 0
            self._check_store(topic, partition, seq, last.value())
            with self._store.transaction() as t:
                if found := t.outbox.published((topic, partition), seq):
                    logger().info("already published", topic=topic, partition=partition, records=found)

    def _last_published(self) -> Iterator[Message]:
        for topic in outputs(self._kafka.topics):
            ranges = bounds(self._kafka, topic, self._kafka.partitions)
            yield from tail(self._kafka, topic, ranges, 1, _is_numbered, step=FEW_RECORDS)

    def _check_store(self, topic: str, partition: int, seq: int, value: bytes | None) -> None:
        """Refuses a topic that was written from another store: its seq would be repeated or skipped."""
        with self._store.reading() as t:
            row = t.outbox.at((topic, partition), seq)
            if seq < t.outbox.next_seq((topic, partition)) and (row is None or row.value == value):
                return
        raise Fatal(
            f"recovery read of {topic}[{partition}]: its seq {seq} was not written from the store {self._store.name}",
            hint="start with the store that wrote this topic (its newest copy)",
        )

    def _publish(self, producer: Producer) -> bool:
        """Publishes pending records; returns whether there were any."""
        self._wakeup.clear()
        with self._store.reading() as t:
            rows = t.outbox.pending(1 if self._singly else BATCH)
        if not rows:
            self._wakeup.wait(POLL_SECONDS)
            return False
        self._singly = max(0, self._singly - 1)
        try:
            _transact(producer, rows)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            producer.abort_transaction(BROKER_SECONDS)
            if not self._truncated(rows):
                raise
            return True
        with self._store.transaction() as t:
            for partition, seq in {(row.topic, row.partition): row.seq for row in rows}.items():
                t.outbox.published(partition, seq)
        latencies = [time.time() - row.detected_at for row in rows if row.detected_at is not None]
        self._metrics.emitted(len(latencies))
        for seconds in latencies:
            self._metrics.latency(seconds)
        return True

    def _truncated(self, rows: Sequence[Outgoing]) -> bool:
        """Truncates a dead letter that Kafka finds too large. False for any other record."""
        if len(rows) > 1:  # a batch may be too large without any record that is: publish each by itself
            self._singly = len(rows)
            return True
        (row,) = rows
        if row.topic != self._kafka.topics.dead_letters(DOWNSTREAM) or TRUNCATED in dict(row.headers):
            return False
        with self._store.transaction() as t:
            t.outbox.replace(truncate(row))
        self._singly += 1
        self._metrics.dead_letter_truncated()
        logger().error(
            "dead letter too large for Kafka, truncated", topic=row.topic, partition=row.partition, seq=row.seq
        )
        return True


def _transact(producer: Producer, rows: Iterable[Outgoing]) -> None:
    producer.begin_transaction()
    for row in rows:
        numbered: list[tuple[str, str | bytes | None]] = [*row.headers, (SEQ, str(row.seq).encode())]
        producer.produce(row.topic, row.value, row.key, row.partition, headers=numbered)
    producer.commit_transaction()


def seq_of(message: Message) -> int | None:
    """The number of a record of the relay; None for a record of another writer."""
    number = dict(message.headers() or []).get(SEQ)
    return int(number) if isinstance(number, bytes) and len(number) < 20 and number.isdigit() else None


def _is_numbered(message: Message) -> bool:
    """Logs a record of another writer: only the notifier may write this topic."""
    if seq_of(message) is not None:
        return True
    logger().error(
        f"record of another writer skipped: it has no {SEQ} header; only the notifier may write this topic",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
    )
    return False
