"""`loop.py START.json`: a consumer, a producer and a loop between them, as one writes it without a framework.

At least once: what it has read is committed every second, behind a flush. State is a dictionary, which a crash takes
along.
"""

import signal
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer
from records import KIND, ORDER, counted, decoded, encoded, moved, rule

COMMIT_SECONDS = 1.0
counts: dict[str, int] = {}
countries: dict[str, str] = {}
running = True


def count(event: dict[str, Any]) -> dict[str, Any] | None:
    card = event["card_id"]
    counts[card] = now = counts.get(card, 0) + 1
    return counted(event, now)


def follow(event: dict[str, Any]) -> dict[str, Any] | None:
    card = event["card_id"]
    told = moved(event, countries.get(card))
    countries[card] = event["country"]
    return told


def stop(*_: object) -> None:
    global running
    running = False


JUDGES: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
    "rule": rule,
    "aggregate": count,
    "fold": follow,
}


def main() -> None:
    judge = JUDGES[KIND]
    common = {"bootstrap.servers": ORDER["bootstrap"]}
    group = {"group.id": ORDER["name"], "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(common | group)
    producer = Producer(common | {"linger.ms": 0, "acks": "all", "queue.buffering.max.messages": 1_000_000})
    consumer.subscribe([ORDER["input"]])
    committed = time.monotonic()
    while running:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            alert = judge(decoded(message.value() or b""))
            if alert is not None:
                producer.produce(ORDER["output"], encoded(alert), message.key())
        producer.poll(0)
        if time.monotonic() - committed > COMMIT_SECONDS:
            producer.flush()
            consumer.commit(asynchronous=True)
            committed = time.monotonic()
    producer.flush()
    consumer.close()


signal.signal(signal.SIGTERM, stop)
main()
