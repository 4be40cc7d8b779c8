"""How fast upstream drains a backlog, compared with plain Spark jobs on the same topic (`make bench-pytest`)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark import avro
from lozenge.spark.internals import driver_jvm
from lozenge.spark.session import spark_session
from lozenge_deploy.demo.feed import Generator
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_upstream.streaming.group_position import Position
from tests.bench.backlog import write
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import move
from tests.streams import AUTH, RAW_JSON, RELEASE, every_topic, output

RECORDS = int(os.environ.get("LOZENGE_BENCH_RECORDS", "1000000"))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker with a backlog of raw records of AUTH-JSON."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap_mb=512) as broker:
        settings = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(settings, [*every_topic(TOPICS), Topic("bench.plain.v1", 4)])
        end = datetime.now(UTC)
        past = Generator(end - timedelta(days=90), seed=7).past(end, RECORDS)
        write(settings, TOPICS.prefixed(RAW_JSON), TOPICS.partitions, ((raw.key or b"", raw.value) for raw in past))
        yield settings


Measured = tuple[float, float]
"""Seconds and processor seconds of the JVM."""


def test_backlog(kafka: KafkaSettings, tmp_path: Path) -> None:
    taken = {"upstream: event, copy by terminal, headers, dead letters": _upstream(kafka, tmp_path, '["terminal"]')}
    _rewind(kafka)
    taken["upstream without the copy by terminal"] = _upstream(kafka, tmp_path, "[]")
    spark = spark_session("bench", cores=2, memory_mb=640)
    jvm = driver_jvm.jvm_pid(spark)
    _plain_read(kafka, spark)
    taken["plain Spark: read, count bytes"] = _timed(jvm, lambda: _plain_read(kafka, spark))
    _plain_normalise(kafka, spark)
    taken["plain Spark: from_json, to_avro, write one copy"] = _timed(jvm, lambda: _plain_normalise(kafka, spark))
    spark.stop()
    print(f"\nbacklog of {RECORDS:,} raw records, 4 partitions, 2 cores; the second half of it, so compiled and warm")
    for name, (seconds, cpu) in taken.items():
        print(f"  {name:58} {1 / seconds:>9,.0f} records/s {cpu * 1e6:7.1f} processor us/record")


def _upstream(kafka: KafkaSettings, folder: Path, rekeys: str) -> Measured:
    """Per record, over the second half of the backlog."""
    environment = os.environ | {
        "LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "LOZENGE_UPSTREAM_REKEYS": rekeys,
        "LOZENGE_UPSTREAM_TOKEN_KEY": "a-key-for-benchmarks",
    }
    with (folder / "stderr").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "lozenge_upstream"], env=environment, stderr=log)
    position = Position(kafka, "upstream", output(kafka), RELEASE)

    def reach(wanted: float) -> tuple[int, float, float]:
        while True:
            at = position.read({TOPICS.prefixed(RAW_JSON): range(TOPICS.partitions)})[
                TOPICS.prefixed(RAW_JSON)
            ].values()
            if (done := sum(max(0, offset) for offset in at)) >= wanted:
                return done, time.monotonic(), _cpu(_child(process.pid))
            assert process.poll() is None, (folder / "stderr").read_text()[-2000:]
            time.sleep(0.02)

    try:
        half, begun, cpu = reach(RECORDS / 2)
        # the last batch is a small rest and would only add a trigger's wait
        done, ended, cpu_then = reach(RECORDS * 0.95)
    finally:
        position.close()
        process.terminate()
        process.wait(60)
    return (ended - begun) / (done - half), (cpu_then - cpu) / (done - half)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rewind(kafka: KafkaSettings) -> None:
    move(kafka, "upstream", dict.fromkeys(range(TOPICS.partitions), 0), TOPICS.prefixed(RAW_JSON))


def _plain_read(kafka: KafkaSettings, spark: SparkSession) -> None:
    raw = spark.read.format("kafka").options(**kafka.spark()).option("subscribe", TOPICS.prefixed(RAW_JSON)).load()
    raw.select(F.sum(F.length("value"))).collect()


def _plain_normalise(kafka: KafkaSettings, spark: SparkSession) -> None:
    """What one would write first: no checks, no headers, one output."""
    raw = spark.read.format("kafka").options(**kafka.spark()).option("subscribe", TOPICS.prefixed(RAW_JSON)).load()
    names = [
        "txn_id",
        "ts",
        "pan",
        "account",
        "merchant",
        "terminal",
        "mcc",
        "country",
        "amount",
        "currency",
        "channel",
        "result",
    ]
    schema = ", ".join(f"{name} string" for name in names)
    parsed = raw.select("*", F.from_json(F.col("value").cast("string"), schema).alias("r"))
    event = F.struct(
        F.coalesce("r.txn_id", F.lit("")).alias("event_id"),
        F.coalesce(F.col("r.ts").try_cast("timestamp"), "timestamp").alias("event_time"),
        F.coalesce(F.sha2("r.pan", 256), F.lit("")).alias("card_id"),
        F.col("r.account").alias("account_id"),
        *(
            F.coalesce(f"r.{n}", F.lit("")).alias(a)
            for n, a in (("merchant", "merchant_id"), ("terminal", "terminal_id"))
        ),
        *(F.coalesce(f"r.{name}", F.lit("")).alias(name) for name in ("mcc", "country")),
        F.coalesce(F.col("r.amount").try_cast("decimal(18,4)"), F.lit(0).cast("decimal(18,4)")).alias("amount"),
        F.coalesce("r.currency", F.lit("")).alias("currency"),
        F.coalesce("r.channel", F.lit("")).alias("channel"),
        F.coalesce("r.result", F.lit("")).alias("auth_result"),
        F.struct(F.lit("plain").alias("source"), "topic", "partition", "offset", "timestamp").alias("raw"),
    )
    rows = parsed.select(F.col("r.pan").alias("key"), avro.encode(event, AUTH.event_schema).alias("value"))
    rows.write.format("kafka").options(**kafka.spark()).option("topic", "bench.plain.v1").save()


def _timed(jvm: int, call: Callable[[], None]) -> Measured:
    started, cpu = time.monotonic(), _cpu(jvm)
    call()
    return (time.monotonic() - started) / RECORDS, (_cpu(jvm) - cpu) / RECORDS
