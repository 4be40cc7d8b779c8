"""The measuring consumer, in a process of its own: it notes when each record came, and leaves decoding for later.

It reads committed records one by one (`poll`): asking for several at once waits for several.
"""

import gc
import time
from collections.abc import Callable
from ctypes import c_int64
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.platform import TOPICS


class Arrival(NamedTuple):
    """A record, when it came here, and its timestamp, in nanoseconds since 1970."""

    came_ns: int
    written_ns: int
    value: bytes


class Recorder:
    """A process that notes what comes; it ends with the block.

    `serve` is given `args`, its end of a pipe, and the count of what came. It sends one message when it is ready, the
    `readiness`, and answers each one with all arrivals since the last.
    """

    readiness: Any

    def __init__(self, serve: Callable[..., None], *args: object) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._count: Synchronized[int] = context.Value(c_int64, 0)
        self._process = context.Process(target=serve, args=(*args, there, self._count), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self.readiness = self._here.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._here.close()
        self._process.terminate()
        self._process.join()

    @property
    def count(self) -> int:
        """How much has come since the last `take`."""
        return self._count.value

    def take(self) -> list[Arrival]:
        """All of it, in the order in which it came."""
        self._here.send(None)
        arrivals: list[Arrival] = self._here.recv()
        return arrivals


class Gauge(Recorder):
    """Reads `topic` from the earliest record on."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        super().__init__(_serve, kafka, topic)


def _serve(kafka: KafkaSettings, topic: str, orders: Connection, count: "Synchronized[int]") -> None:
    gc.disable()  # a collection would delay what it happens to meet
    settings = kafka.client(
        group_id=f"bench-{time.time_ns()}",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_queue_backoff_ms=1,  # a full queue of a backlog is no reason to rest
    )
    consumer = Consumer(settings)
    partitions = [TopicPartition(topic, p) for p in range(TOPICS.partitions)]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition, timeout=30)[0]
    consumer.assign(partitions)
    orders.send("it knows where it begins")
    arrivals: list[Arrival] = []
    while True:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            arrivals.append(Arrival(time.time_ns(), message.timestamp()[1] * 1_000_000, message.value() or b""))
            count.value += 1
        elif orders.poll():  # between two records only
            try:
                orders.recv()
            except EOFError:
                return
            orders.send(arrivals)
            arrivals, count.value = [], 0
