"""A plain confluent-kafka loop, as its users write it: read, make a record of it, write.

At least once: what it has read is committed every second, behind a flush.
"""

import signal
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Message, Producer
from records import ORDER

COMMIT_SECONDS = 1.0
Record = tuple[bytes, bytes | None]
"""What is written, and its key."""
running = True


def stop(*_: object) -> None:
    global running
    running = False


def loop(source: str, sink: str, made: Callable[[Message], Record | None]) -> None:
    """Writes to the topic `sink` what is `made` of each record of the topic `source`, until SIGTERM comes."""
    signal.signal(signal.SIGTERM, stop)
    common = {"bootstrap.servers": ORDER["bootstrap"]}
    group = {"group.id": ORDER["name"], "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(common | group)
    writing = {"linger.ms": ORDER["linger_ms"], "acks": "all", "queue.buffering.max.messages": 1_000_000}
    producer = Producer(common | writing)
    consumer.subscribe([source])
    committed = time.monotonic()
    while running:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and (record := made(message)) is not None:
            producer.produce(sink, *record)
        producer.poll(0)
        if time.monotonic() - committed > COMMIT_SECONDS:
            producer.flush()
            consumer.commit(asynchronous=True)
            committed = time.monotonic()
    producer.flush()
    consumer.close()
