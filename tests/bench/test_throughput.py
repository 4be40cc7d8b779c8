"""Events per second of every kind of detector over a backlog, and of the fold by itself.

`make bench`: prints a table. Every figure stands beside a limit measured in the same run on the same
topic: a bare Spark query that decodes the same records and throws them away. Nothing is asserted but
that what went in came out.
"""

import random
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.avro import Codec
from lozenge.fold import Slot, key_bytes
from lozenge.job import source
from lozenge.job.fold_host import FoldHost
from lozenge.job.state_topic import read_state
from lozenge.kafka import KafkaSettings
from lozenge.loading import Loaded, from_folder
from lozenge.partitions import partition_of
from lozenge.records import event_type
from lozenge.schemas import newest
from lozenge.session import spark_session
from lozenge_deploy.broker import EmbeddedBroker
from tests.integration.harness import committed, group_offsets, running

EVENTS = 1_000_000
KEYS = 1_000_000
DETECTORS = Path(__file__).parents[2] / "detectors"
START = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[str, float, float]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker with a backlog of a million events of 5,000 cards."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap_mb=512) as broker:
        settings = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(settings, topics.platform_topics())
        _produce(settings, cards=5_000)
        yield settings


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two cores and the heap that a detector with a large batch would be given."""
    session = spark_session("bench", cores=2, memory_mb=1536, conf={"spark.driver.maxResultSize": "768m"})
    yield session
    session.stop()


def test_backlog_of_a_million_events(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    bare = _bare(kafka, spark)
    _bare(kafka, spark)
    rows: list[Row] = [("decode and throw away (limit)", EVENTS / bare, 1.0)]
    for name in ("large_amount", "card_velocity", "duplicate_charge", "recurring_price_increase"):
        limit = _bare(kafka, spark)
        seconds = _drain(from_folder(DETECTORS / name), kafka, spark, tmp_path)
        rows.append((name, EVENTS / seconds, limit / seconds))
    _print("backlog of 1,000,000 events, 4 partitions, 2 cores", rows)


@pytest.mark.parametrize("size", [3_000, 20_000, 200_000])
def test_the_fold_by_batch_size(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path, size: int) -> None:
    loaded = from_folder(DETECTORS / "duplicate_charge")
    smaller = loaded.declaration.model_copy(update={"max_batch": size, "trigger": timedelta(0)})
    limit = _bare(kafka, spark)
    seconds = _drain(replace(loaded, declaration=smaller), kafka, spark, tmp_path)
    _print(f"duplicate_charge, batches of {size:,}", [("whole job", EVENTS / seconds, limit / seconds)])


def test_the_plain_fold_and_a_million_keys_restored(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = from_folder(DETECTORS / "duplicate_charge")
    module: Any = __import__("duplicate_charge")
    from lozenge.fold import Fold

    by = ("card_id", "merchant_id", "amount", "currency")
    fold = Fold(None, by, module.Seen, module.step, timedelta(days=90))  # type: ignore[arg-type]
    make = event_type(("event_id", "event_time", "card_id", "merchant_id", "amount", "currency"))
    events = [
        make(f"e{n}", START + timedelta(seconds=n), f"card_{n}", "m", Decimal("1.0000"), "EUR") for n in range(KEYS)
    ]
    before = _rss()
    slot = Slot(fold, loaded.detector.settings())
    seconds = _timed(lambda: [slot.advance(key_bytes((e[2], e[3], e[4], e[5])), e) for e in events])
    print(
        f"\nplain fold, 1,000,000 new keys: {KEYS / seconds:,.0f} events/s, {(_rss() - before) / KEYS:,.0f} bytes a key"
    )
    topic = f"lozenge.state.bench{time.time_ns()}.v1"
    ensure_topics(kafka, [topics.Topic(topic, topics.EVENT_PARTITIONS)])
    host = FoldHost(fold, loaded.detector.settings(), "card_id", topic, topics.EVENT_PARTITIONS)
    producer = Producer(kafka.client(linger_ms=20, queue_buffering_max_messages=1_000_000))
    host._slots = {0: slot}
    for record in host._changes():
        producer.produce(record.topic, record.value, record.key, partition_of(record.key or b"", 4))
        if producer.poll(0) is None:
            break
    producer.flush()
    read = _timed(lambda: sum(1 for _ in read_state(kafka, topic, topics.EVENT_PARTITIONS)))
    restored = _timed(lambda: host.restore(kafka))
    assert host.keys == KEYS
    print(f"restore 1,000,000 keys: {restored:.1f} s ({KEYS / restored:,.0f} keys/s), of which reading {read:.1f} s")


def _drain(loaded: Loaded, kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> float:
    """Seconds from the start of the query to the commit of the last offset."""
    name = f"bench_{time.time_ns()}"
    loaded = replace(loaded, name=name)
    ensure_topics(kafka, topics.detector_topics(name))
    started = time.monotonic()
    with running(loaded, kafka, spark, tmp_path) as run:
        while run.error is None and sum(run.runner.offsets.values()) < EVENTS:
            time.sleep(0.05)
        seconds = time.monotonic() - started
    assert sum(offset for offset, _ in group_offsets(kafka, name).values()) == EVENTS
    found = committed(kafka, topics.alerts(name))
    assert len({dict(r.headers)["ce_id"] for r in found}) == len(found)
    print(f"{name}: {seconds:.1f} s, {len(found)} alerts", flush=True)
    return seconds


def _bare(kafka: KafkaSettings, spark: SparkSession) -> float:
    """Seconds for a Spark batch to read and decode the whole topic and nothing else."""
    ends = dict.fromkeys(range(topics.EVENT_PARTITIONS), (0, -1))
    raw = source.bounded(spark, kafka, "bench", topics.EVENTS, ends)
    frame = source.events(raw, [newest("event")], "card_id")
    return _timed(lambda: frame.write.format("noop").mode("overwrite").save())


def _produce(kafka: KafkaSettings, cards: int) -> None:
    codec, rng = Codec.of("event"), random.Random(7)
    producer = Producer(kafka.client(compression_type="lz4", linger_ms=50, queue_buffering_max_messages=1_000_000))
    for n in range(EVENTS):
        card = f"card_{rng.randrange(cards):024d}"
        moment = START + timedelta(milliseconds=40 * n)
        value = codec.encode(
            {
                "event_id": f"{n:08d}-0000-5000-8000-000000000000",
                "event_time": moment,
                "card_id": card,
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
        )
        key = card.encode()
        while True:
            try:
                producer.produce(topics.EVENTS, value, key, partition_of(key, topics.EVENT_PARTITIONS))
                break
            except BufferError:
                producer.poll(0.1)
        if n % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def _timed(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def _rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _print(title: str, rows: list[Row]) -> None:
    print(f"\n{title}")
    for name, rate, ratio in rows:
        print(f"  {name:32} {rate:>12,.0f} events/s   {ratio:5.2f} of the limit beside it")
