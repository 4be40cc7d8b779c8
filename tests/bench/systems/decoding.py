"""Limits of every backlog: decoding the same records and throwing them away, by fastavro and by Spark.

fastavro's is the bare call, on records that are in memory already; Spark's also reads them from the broker.
"""

import io
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import fastavro

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds, retained
from lozenge.process.usage import Meter
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.system import BACKLOG, Guarantees, Start, System
from tests.streams import AUTH

PROJECT = Path(__file__).parents[3]
RECORDS = 100_000
_FRAME = 5
NOTHING = Guarantees("none", "never")


def by_fastavro(start: Start) -> Mapping[str, float]:
    """Of up to `RECORDS` records, in this process."""
    schema = fastavro.parse_schema(AUTH.event_schema.definition)
    found = retained(start.kafka, start.input, TOPICS.partitions)
    bodies = [io.BytesIO((message.value() or b"")[_FRAME:]) for message, _ in zip(found, range(RECORDS), strict=False)]
    began, cpu = time.monotonic(), time.process_time()
    for body in bodies:
        fastavro.schemaless_reader(body, schema, None)
    return _rates(len(bodies), time.monotonic() - began, time.process_time() - cpu)


def by_spark(start: Start) -> Mapping[str, float]:
    """Of the whole topic, in a process of its own, once its JVM is warm."""
    command = [sys.executable, "-m", "tests.bench.systems.decoding", start.kafka.bootstrap]
    run = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    rates: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return rates


def _spark(kafka: KafkaSettings) -> Mapping[str, float]:
    from lozenge.job.query import canonical_events
    from lozenge.spark import kafka_source
    from lozenge.spark.session import spark_session

    spark = spark_session("decode", cores=1)
    ranges = bounds(kafka, TOPICS.events("auth"), TOPICS.partitions)
    raw = kafka_source.bounded(spark, kafka, "bench", TOPICS.events("auth"), ranges)
    frame = canonical_events.events(raw, AUTH.schemas, AUTH, "card_id")
    meter = Meter()
    for _ in ("to warm up", "to measure"):
        began, cpu = time.monotonic(), meter.read().cpu_seconds
        frame.write.format("noop").mode("overwrite").save()
        seconds, used = time.monotonic() - began, meter.read().cpu_seconds - cpu
    return _rates(sum(end - low for low, end in ranges.values()), seconds, used)


def _rates(events: int, seconds: float, cpu: float) -> Mapping[str, float]:
    return {"events/s/core": events / cpu, "events/s": events / seconds}


SYSTEMS = (
    System(
        "fastavro, decode only", "limit", Guarantees("none", "never"), shapes=BACKLOG, probe=by_fastavro, core=BACKLOG
    ),
    System("Spark, read and decode", "limit", NOTHING, shapes=BACKLOG, probe=by_spark),
)

if __name__ == "__main__":
    print(json.dumps(_spark(KafkaSettings(bootstrap=sys.argv[1]))))
