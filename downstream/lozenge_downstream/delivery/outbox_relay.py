"""Publishes the outbox to Kafka in order of `seq`, each record exactly once.

The order of things: a Kafka transaction commits, then the rows are marked. A crash between the two
leaves rows unmarked that stand in Kafka; so every start first reads back the last `seq` of each
partition and marks what is already there. Of several notifiers of one store, the one that holds the
lease publishes; the transactional id keeps out one that has lost it and does not know yet.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lozenge.contracts.dead_letters import TRUNCATED
from lozenge.contracts.topics import DEAD_LETTER_BYTES, DOWNSTREAM, Topics
from lozenge.errors import Fatal
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger
from lozenge_downstream.dead_letter_encoder import cut
from lozenge_downstream.model import Outgoing
from lozenge_downstream.store import Store

SEQ = "lozenge-seq"
"""Header with the record's number in its output partition."""

FIRST_STEP = 4
BATCH = 500
LOOK_SECONDS = 0.5
GATHER_SECONDS = 0.02
"""So far apart transactions begin at least; the first one after a pause waits for nobody."""
RETRY_SECONDS = 1.0
BROKER_SECONDS = 10.0
TRANSACTION_MS = 15_000


def outputs(topics: Topics) -> tuple[str, ...]:
    """The topics that a notifier writes."""
    return topics.notifications, topics.feedback, topics.dead_letters(DOWNSTREAM)


class OutboxRelay:
    """Publishes while it `may`. Counts notifications and their latency from detection to commit, no dead letters."""

    def __init__(self, kafka: KafkaSettings, store: Store, metrics: Metrics, may: Callable[[], bool]) -> None:
        self._kafka, self._store, self._metrics, self._may = kafka, store, metrics, may
        self._fresh = threading.Event()
        self._singly = 0

    def wake(self) -> None:
        """Tells the relay, from any thread, that the outbox has grown."""
        self._fresh.set()

    def run(self, stop: threading.Event) -> None:
        """Publishes until `stop` is set; survives a lost broker, and waits while another one publishes."""
        while not stop.is_set():
            if not self._may():
                stop.wait(LOOK_SECONDS)
                continue
            try:
                producer = self._producer()
                self._catch_up()
                while self._may() and not stop.is_set():
                    begun = time.monotonic()
                    if self._publish(producer):
                        stop.wait(begun + GATHER_SECONDS - time.monotonic())
            except KafkaException as error:
                logger().warning("relay starts anew", error=error.args[0].str())
                stop.wait(RETRY_SECONDS)

    def _producer(self) -> Producer:
        producer = Producer(
            self._kafka.client(
                transactional_id="downstream-relay",
                transaction_timeout_ms=TRANSACTION_MS,
                linger_ms=0,
                message_max_bytes=DEAD_LETTER_BYTES,
                compression_type="gzip",  # the one that every client reads without a further library
            )
        )
        producer.init_transactions(BROKER_SECONDS)
        return producer

    def _catch_up(self) -> None:
        """Marks what an earlier relay published but could not mark."""
        topics = self._kafka.topics
        places = [TopicPartition(t, p) for t in outputs(topics) for p in range(topics.partitions)]
        for last in last_records(self._kafka, places):
            topic, partition, seq = str(last.topic()), int(last.partition() or 0), seq_of(last)
            self._hold_to_store(topic, partition, seq, last.value())
            with self._store.transaction() as t:
                if found := t.outbox.published((topic, partition), seq):
                    logger().info("already published", topic=topic, partition=partition, records=found)

    def _hold_to_store(self, topic: str, partition: int, seq: int, value: bytes | None) -> None:
        """Refuses a topic that another store has written: numbering on would repeat or skip a seq."""
        with self._store.reading() as t:
            row = t.outbox.at((topic, partition), seq)
            if seq < t.outbox.next_seq((topic, partition)) and (row is None or row.value == value):
                return
        raise Fatal(
            f"reading back {topic}[{partition}]: its seq {seq} was not written from the store {self._store.name}",
            hint="start with the store that wrote this topic (its newest copy)",
        )

    def _publish(self, producer: Producer) -> bool:
        """Publishes what waits; whether there was anything."""
        self._fresh.clear()
        with self._store.reading() as t:
            rows = t.outbox.pending(1 if self._singly else BATCH)
        if not rows:
            self._fresh.wait(LOOK_SECONDS)
            return False
        self._singly = max(0, self._singly - 1)
        try:
            _transact(producer, rows)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            producer.abort_transaction(BROKER_SECONDS)
            if not self._made_smaller(rows):
                raise
            return True
        with self._store.transaction() as t:
            for place, seq in {(row.topic, row.partition): row.seq for row in rows}.items():
                t.outbox.published(place, seq)
        latencies = [time.time() - row.detected_at for row in rows if row.detected_at is not None]
        self._metrics.emitted(len(latencies))
        for seconds in latencies:
            self._metrics.latency(seconds)
        return True

    def _made_smaller(self, rows: Sequence[Outgoing]) -> bool:
        """Cuts what Kafka finds too large, once that is known; False for what must not be cut, or is cut already."""
        if len(rows) > 1:  # batches may be refused where no record is too large: try each by itself
            self._singly = len(rows)
            return True
        (row,) = rows
        if row.topic != self._kafka.topics.dead_letters(DOWNSTREAM) or TRUNCATED in dict(row.headers):
            return False
        with self._store.transaction() as t:
            t.outbox.replace(cut(row))
        self._singly += 1
        self._metrics.dead_letter_cut()
        logger().error("dead letter too large for Kafka, cut", topic=row.topic, partition=row.partition, seq=row.seq)
        return True


def _transact(producer: Producer, rows: Iterable[Outgoing]) -> None:
    producer.begin_transaction()
    for row in rows:
        numbered: list[tuple[str, str | bytes | None]] = [*row.headers, (SEQ, str(row.seq).encode())]
        producer.produce(row.topic, row.value, row.key, row.partition, headers=numbered)
    producer.commit_transaction()


def seq_of(message: Message) -> int:
    """The number that the relay gave a record; raises Fatal for a record of someone else."""
    number = dict(message.headers() or []).get(SEQ)
    if not isinstance(number, bytes):
        raise Fatal(
            f"reading back {message.topic()}[{message.partition()}]: offset {message.offset()} has no {SEQ} header",
            hint="only the notifier may write this topic; find the other writer",
        )
    return int(number)


def last_records(kafka: KafkaSettings, places: Iterable[TopicPartition]) -> list[Message]:
    """The last committed record of each partition that has one. Raises KafkaException."""
    consumer = Consumer(
        kafka.client(
            group_id="downstream-readback",
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="earliest",
            fetch_wait_max_ms=10,  # there is nothing to wait for at the end of a log
        )
    )
    try:
        bounds = [(p, *consumer.get_watermark_offsets(p, BROKER_SECONDS)) for p in places]
        found: list[Message] = []
        step = FIRST_STEP
        # Transaction markers and aborted records take offsets too: step back further where no record shows.
        while bounds:
            starts = [TopicPartition(p.topic, p.partition, max(low, high - step)) for p, low, high in bounds]
            last = _last_of_each(consumer, starts)
            found += last.values()
            bounds = [b for b in bounds if (b[0].topic, b[0].partition) not in last and b[2] - step > b[1]]
            step *= 16
        return found
    finally:
        consumer.close()


def _last_of_each(consumer: Consumer, starts: list[TopicPartition]) -> dict[tuple[str, int], Message]:
    """The last record of every partition at or after its start."""
    consumer.assign(starts)
    open_ends = {(p.topic, p.partition) for p in starts}
    last: dict[tuple[str, int], Message] = {}
    while open_ends:
        message = consumer.poll(BROKER_SECONDS)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "reading back the outputs"))
        place = str(message.topic()), int(message.partition() or 0)
        error = message.error()
        if error is None:
            last[place] = message
        elif error.code() == KafkaError._PARTITION_EOF:
            open_ends.discard(place)
        else:
            raise KafkaException(error)
    return last
