"""A backlog of a million events of 5,000 cards, and how long a job takes to drain it."""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from lozenge.contracts.partitioner import partition_of
from lozenge.detector.loader import LoadedDetector
from lozenge.kafka.settings import KafkaSettings, Option
from lozenge.kafka.topic_admin import ensure_topics
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import committed, group_offsets, running
from tests.streams import event_codec

EVENTS = 1_000_000
CARDS = 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def events(number: int = EVENTS) -> Iterator[dict[str, Any]]:
    """Its events, or another number of such, in the order in which they are written."""
    rng = random.Random(7)
    for n in range(number):
        moment = START + timedelta(milliseconds=40 * n)
        yield {
            "event_id": f"{n:08d}-0000-5000-8000-000000000000",
            "event_time": moment,
            "card_id": f"card_{rng.randrange(CARDS):024d}",
            "account_id": None,
            "merchant_id": f"m-{rng.randrange(2000):05d}",
            "terminal_id": f"t-{rng.randrange(9000):06d}",
            "mcc": rng.choice(("5411", "5812", "5541")),
            "country": "DE",
            "amount": Decimal(rng.randrange(100, 20_000 if n % 1000 else 90_000)).scaleb(-2),
            "currency": "EUR",
            "channel": rng.choice(("pos", "ecom")),
            "auth_result": "approved",
            "raw": {"source": "bench", "topic": "AUTH-JSON", "partition": 0, "offset": n, "timestamp": moment},
        }


def charged_twice(number: int) -> Iterator[dict[str, Any]]:
    """So many events, some of which charge a card a second time."""

    def charges() -> Iterator[dict[str, Any]]:
        for n, event in enumerate(events(number)):
            yield event
            if n % 1000 == 0:
                yield event | {"event_id": event["event_id"].replace("-0000-", "-0001-")}

    return islice(charges(), number)


def produce(kafka: KafkaSettings, backlog: Iterable[dict[str, Any]]) -> None:
    """Writes it to the topic of events."""
    codec = event_codec()
    records = ((event["card_id"].encode(), codec.encode(event)) for event in backlog)
    write(kafka, TOPICS.events("auth"), TOPICS.partitions, records, compression_type="lz4")


def write(
    kafka: KafkaSettings, topic: str, partitions: int, records: Iterable[tuple[bytes, bytes | None]], **options: Option
) -> None:
    """Writes (key, value) pairs as fast as the broker takes them, each to its key's partition."""
    producer = Producer(kafka.client(linger_ms=50, queue_buffering_max_messages=1_000_000, **options))
    for number, (key, value) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, partition_of(key, partitions))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def drain(loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, name: str = "") -> float:
    """Seconds from the start of the query, under a name of its own, to the commit of the last offset."""
    name = name or f"bench_{time.time_ns()}"
    loaded = replace(loaded, name=name)
    ensure_topics(kafka, TOPICS.detector(name).contracts())
    started = time.monotonic()
    with running(loaded, kafka, spark, tmp_path) as run:
        while run.error is None and sum(run.runner.offsets.values()) < EVENTS:
            time.sleep(0.05)
        seconds = time.monotonic() - started
    assert sum(offset for offset, _ in group_offsets(kafka, name).values()) == EVENTS
    found = committed(kafka, TOPICS.detector(name).alerts)
    assert len({dict(r.headers)["ce_id"] for r in found}) == len(found)
    print(f"{name}: {seconds:.1f} s, {len(found)} alerts", flush=True)
    return seconds
