"""Raw records flow all the time, and what the broker has acknowledged is written down."""

import threading
import time
from collections import deque
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import produce
from tests.faults.records import Sort, record
from tests.streams import RAW_JSON

TOPICS = Topics()

FLUSH_SECONDS = 120.0
TICK_SECONDS = 0.01
SLICE = 1000


class NotSent(Exception):
    """The broker has not acknowledged what was sent."""


class Flow(threading.Thread):
    """`rate` records a second, and more when it is asked; `receipts` gets a line for each that was acknowledged.

    A line is `number partition offset`. The producer is idempotent and never gives up, so each record is in the
    topic once. Times rise from record to record.
    """

    def __init__(self, kafka: KafkaSettings, seed: int, rate: float, receipts: Path) -> None:
        super().__init__(name="flow", daemon=True)
        self._producer = Producer(
            kafka.client(
                enable_idempotence=True,
                message_timeout_ms=0,
                linger_ms=5,
                queue_buffering_max_messages=1_000_000,
            )
        )
        self._seed, self._rate = seed, rate
        self._receipts = receipts.open("w")
        self._more: deque[tuple[int, Sort]] = deque()
        self._ended = threading.Event()
        self._latest = 0
        self.sent = self.acknowledged = 0
        self.failure = ""

    def run(self) -> None:
        due, before = 0.0, time.monotonic()
        while not self._ended.wait(TICK_SECONDS) or self._more:
            now = time.monotonic()
            due, before = due + (now - before) * self._rate, now
            if not self._ended.is_set():
                self._send(int(due), Sort.ORDINARY)
                due -= int(due)
            while self._more:
                self._send(*self._more[0])
                self._more.popleft()

    def slug(self, count: int, sort: Sort = Sort.ORDINARY) -> None:
        """So many records more, at once."""
        self._more.extend((min(SLICE, count - at), sort) for at in range(0, count, SLICE))

    @property
    def requested(self) -> bool:
        """Whether there are records that were requested at once and are not sent yet."""
        return bool(self._more)

    def end(self) -> None:
        """Stops it; all that was sent is in the topic then. Raises NotSent if it is not."""
        self._ended.set()
        self.join()
        left = self._producer.flush(FLUSH_SECONDS)
        self._receipts.close()
        if left or self.failure:
            raise NotSent(f"sending raw records: {left} are not acknowledged; {self.failure}")

    def _send(self, count: int, sort: Sort) -> None:
        for _ in range(count):
            self._latest = max(self._latest + 1, time.time_ns() // 1000)
            raw = record(self._seed, self.sent, self._latest, sort)
            partition = partition_of(raw.key, TOPICS.partitions)
            numbered = Record(TOPICS.prefixed(RAW_JSON), partition, raw.key, raw.value, [("number", b"%d" % self.sent)])
            produce(self._producer, numbered, on_delivery=partial(self._delivered, self.sent))
            self.sent += 1
        self._producer.poll(0)

    def _delivered(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = str(error)
            return
        self.acknowledged += 1
        self._receipts.write(f"{number} {message.partition()} {message.offset()}\n")
