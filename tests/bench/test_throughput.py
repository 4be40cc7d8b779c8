"""Events per second of every kind of detector over a backlog, and of the fold by itself.

`make bench-pytest`: prints a table. Every figure is compared with a limit measured in the same run on the same
topic: a bare Spark query that decodes the same records and throws them away. Nothing is asserted but
that what went in came out.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topic
from lozenge.detector.events import event_type
from lozenge.detector.fold import PartitionState, key_bytes
from lozenge.detector.loader import from_folder
from lozenge.detector.stored_state import check_entry
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.query import canonical_events
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark import kafka_source
from tests.bench.backlog import EVENTS, START, drain
from tests.bench.harness.platform import TOPICS
from tests.streams import AUTH

KEYS = 1_000_000
DETECTORS = Path(__file__).parents[2] / "detectors"

Row = tuple[str, float, float]


def test_backlog_of_a_million_events(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    bare = _bare(kafka, spark)
    _bare(kafka, spark)
    rows: list[Row] = [("decode and throw away (limit)", EVENTS / bare, 1.0)]
    for name in ("large_amount", "card_velocity", "duplicate_charge", "recurring_price_increase"):
        limit = _bare(kafka, spark)
        seconds = drain(from_folder(DETECTORS / name), kafka, spark, tmp_path)
        rows.append((name, EVENTS / seconds, limit / seconds))
    _print("backlog of 1,000,000 events, 4 partitions, 2 cores", rows)


@pytest.mark.parametrize("size", [3_000, 20_000, 200_000])
def test_the_fold_by_batch_size(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, size: int) -> None:
    loaded = from_folder(DETECTORS / "duplicate_charge")
    smaller = loaded.declaration.model_copy(update={"max_batch": size, "trigger": timedelta(0)})
    limit = _bare(kafka, spark)
    seconds = drain(replace(loaded, declaration=smaller), kafka, spark, tmp_path)
    _print(f"duplicate_charge, batches of {size:,}", [("whole job", EVENTS / seconds, limit / seconds)])


def test_the_plain_fold_and_a_million_keys_restored(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = from_folder(DETECTORS / "duplicate_charge")
    module: Any = __import__("duplicate_charge")
    from lozenge.detector.fold import Fold

    by = ("card_id", "merchant_id", "amount", "currency")
    fold = Fold(None, by, module.Seen, module.step, timedelta(days=90))  # type: ignore[arg-type]
    make = event_type(("event_id", "event_time", "card_id", "merchant_id", "amount", "currency"))
    events = [
        make(f"e{n}", START + timedelta(seconds=n), f"card_{n}", "m", Decimal("1.0000"), "EUR") for n in range(KEYS)
    ]
    before = _rss()
    slot = PartitionState(fold, loaded.detector.settings())
    seconds = _timed(lambda: [slot.process(key_bytes((e[2], e[3], e[4], e[5])), e) for e in events])
    print(
        f"\nplain fold, 1,000,000 new keys: {KEYS / seconds:,.0f} events/s, {(_rss() - before) / KEYS:,.0f} bytes a key"
    )
    topic = f"lozenge.state.bench{time.time_ns()}.v1"
    ensure_topics(kafka, [Topic(topic, TOPICS.partitions)])
    host = FoldOperator(fold, loaded.detector.settings(), "card_id", topic, range(TOPICS.partitions))
    producer = Producer(kafka.client(linger_ms=20, queue_buffering_max_messages=1_000_000))
    host._states = {0: slot}
    for record in host._changes():
        producer.produce(record.topic, record.value, record.key, partition_of(record.key or b"", 4))
        if producer.poll(0) is None:
            break
    producer.flush()
    read = _timed(lambda: sum(1 for _ in read_latest(kafka, topic, range(TOPICS.partitions), check=check_entry)))
    restored = _timed(lambda: host.restore(kafka))
    assert host.keys == KEYS
    print(f"restore 1,000,000 keys: {restored:.1f} s ({KEYS / restored:,.0f} keys/s), of which reading {read:.1f} s")


def _bare(kafka: KafkaSettings, spark: SparkSession) -> float:
    """Seconds for a Spark batch to read and decode the whole topic and nothing else."""
    ends = dict.fromkeys(range(TOPICS.partitions), (0, -1))
    raw = kafka_source.bounded(spark, kafka, "bench", TOPICS.events("auth"), ends)
    frame = canonical_events.events(raw, AUTH.schemas, AUTH, "card_id")
    return _timed(lambda: frame.write.format("noop").mode("overwrite").save())


def _timed(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def _rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _print(title: str, rows: list[Row]) -> None:
    print(f"\n{title}")
    for name, rate, ratio in rows:
        print(f"  {name:32} {rate:>12,.0f} events/s   {ratio:5.2f} of its limit")
