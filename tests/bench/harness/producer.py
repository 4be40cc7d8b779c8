"""The open-loop producer, in a process of its own: it stamps every event with the moment at which it is *meant* to go.

It never waits for a consumer. If it comes late itself, that is part of every latency, and it says by how much.
"""

import gc
import json
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

from confluent_kafka import KafkaError, Message, Producer

from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.statistics import quantile
from tests.bench.harness.workload import Task
from tests.streams import RAW_JSON, event_codec

_LEAD_SECONDS = 0.2
_FLUSH_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Segment:
    """Events `first` up to `end` (exclusive), `rate` a second; with rate 0 as fast as the broker takes them."""

    first: int
    end: int
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a segment: when its first event was meant to go, how many the broker has, how late it was."""

    segment: Segment
    began_ns: int
    delivered: int
    late_p99_ms: float

    def meant_ns(self, n: int) -> int:
        """When event number `n` was meant to go; needs a rate."""
        return self.began_ns + int((n - self.segment.first) * 1e9 / self.segment.rate)


class Feed:
    """The process; as a context manager it ends with the block."""

    def __init__(self, kafka: KafkaSettings, task: Task, *, raw: bool = False) -> None:
        """Of canonical events, or of their `raw` records."""
        self._here, there = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_serve, args=(kafka, task, raw, there), daemon=True)

    def __enter__(self) -> "Feed":
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._here.close()
        self._process.terminate()
        self._process.join()

    def send(self, segment: Segment) -> Sent:
        """Returns when all of it is in the topic."""
        self._here.send(segment)
        sent: Sent = self._here.recv()
        return sent


class Traffic:
    """Events that come steadily, `rate` a second, one segment behind the other; `next` is the next one's number."""

    def __init__(self, feed: Feed, rate: int) -> None:
        self._feed, self._rate = feed, rate
        self.sent: list[Sent] = []
        self.next = 0

    def flow(self, seconds: float) -> None:
        """For so long."""
        end = self.next + int(self._rate * seconds)
        self.sent.append(self._feed.send(Segment(self.next, end, self._rate)))
        self.next = end


def _serve(kafka: KafkaSettings, task: Task, raw: bool, orders: Connection) -> None:
    gc.disable()  # a collection would delay what it happens to meet
    outlet = _Outlet(kafka, task, raw)
    while True:
        try:
            segment = orders.recv()
        except EOFError:
            return
        orders.send(outlet.send(segment))


class _Outlet:
    def __init__(self, kafka: KafkaSettings, task: Task, raw: bool) -> None:
        settings = kafka.client(linger_ms=0, acks="all", queue_buffering_max_messages=1_000_000)
        self._producer, self._codec, self._task = Producer(settings), event_codec(), task
        self._topic, self._record = (
            (TOPICS.prefixed(RAW_JSON), self._raw) if raw else (TOPICS.events("auth"), self._event)
        )
        self._delivered = 0

    def send(self, segment: Segment) -> Sent:
        self._delivered, late = 0, []
        began = time.time_ns() + int(_LEAD_SECONDS * 1e9)
        for n in range(segment.first, segment.end):
            meant = began + int((n - segment.first) * 1e9 / segment.rate) if segment.rate else time.time_ns()
            key, value = self._record(n, meant)
            while (ahead := meant - time.time_ns()) > 0:
                self._producer.poll(0)
                time.sleep(min(ahead / 1e9, 0.01))
            late.append((time.time_ns() - meant) / 1e6)
            self._produce(key, value)
        self._producer.flush(_FLUSH_SECONDS)
        return Sent(segment, began, self._delivered, quantile(sorted(late), 0.99))

    def _event(self, n: int, meant_ns: int) -> tuple[bytes, bytes]:
        event = self._task.event(n, meant_ns)
        return event["card_id"].encode(), self._codec.encode(event)

    def _raw(self, n: int, meant_ns: int) -> tuple[bytes, bytes]:
        record = self._task.raw(n, meant_ns)
        return record["pan"].encode(), json.dumps(record).encode()

    def _produce(self, key: bytes, value: bytes) -> None:
        partition = partition_of(key, TOPICS.partitions)
        while True:
            try:
                self._producer.produce(self._topic, value, key, partition, on_delivery=self._count)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _count(self, error: KafkaError | None, message: Message) -> None:
        self._delivered += error is None
