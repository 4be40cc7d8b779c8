"""What each guarantee costs: from event to alert, and in processor time, the three in turn on one broker and session.

`make bench-pytest ARGS="-k guarantees"`: prints for each the median and the 95th percentile of the latency that a
reader of committed records sees, the processor seconds of everything (job, broker, feed and reader), and their ratios
to exactly once. Nothing is asserted but that every alert came.
"""

import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean, quantiles

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert
from lozenge.job.commit.delivery_guarantees import COMMIT_BY_GUARANTEE
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.usage import Meter
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.harness.platform import TOPICS
from tests.bench.soak import Alerts, Traffic
from tests.integration.harness import new_detector, running, wait_for
from tests.streams import every_topic

ROUNDS, ROUND_SECONDS, RATE = 4, 15.0, 200


def large(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    return events.where(F.col("amount") > 500).select(*alert(reason=F.lit("large")))


@pytest.mark.parametrize("trigger", ["100ms", "1s"])
def test_the_guarantees_side_by_side(trigger: str, spark: SparkSession, tmp_path: Path) -> None:
    latencies, processor = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(TOPICS))
        for number in range(ROUNDS + 1):  # the first only warms up
            for guarantee in COMMIT_BY_GUARANTEE:
                seen, cost = _round(kafka, spark, tmp_path / f"{number}-{guarantee}", guarantee, trigger)
                if number > 0:
                    latencies[guarantee] += seen
                    processor[guarantee].append(cost)
    print(f"\n{RATE} events/s, of which a fifth raises an alert, trigger {trigger}, {ROUNDS} x {ROUND_SECONDS:.0f} s")
    (middle, high), cost = _points(latencies["exactly-once"]), fmean(processor["exactly-once"])
    for guarantee in COMMIT_BY_GUARANTEE:
        (p50, p95), seconds = _points(latencies[guarantee]), fmean(processor[guarantee])
        print(
            f"  {guarantee:14} p50 {p50 * 1000:5.0f} ms ({p50 / middle:.2f}), "
            f"p95 {p95 * 1000:5.0f} ms ({p95 / high:.2f}), "
            f"{seconds / ROUND_SECONDS:.2f} cores ({seconds / cost:.2f})"
        )


def _round(
    kafka: KafkaSettings, spark: SparkSession, folder: Path, guarantee: str, trigger: str
) -> tuple[list[float], float]:
    """The latencies of all alerts of a round, and the processor seconds that it took."""
    folder.mkdir()
    loaded = new_detector(kafka, Detector(large, settings=Settings), folder, guarantee=guarantee, trigger=trigger)
    meter, traffic = Meter(), Traffic(kafka, RATE)
    alerts = Alerts(kafka, traffic, [loaded.name])
    with running(loaded, kafka, spark, folder) as run:
        wait_for(lambda: run.runner.offsets, "the claim")
        time.sleep(2)  # until its query waits for events
        before = meter.read().cpu_seconds
        for thread in (alerts, traffic):
            thread.start()
        time.sleep(ROUND_SECONDS)
        cost = meter.read().cpu_seconds - before
        traffic.end()
        wait_for(lambda: len(alerts.received[loaded.name]) >= len(traffic.large), "every alert")
    alerts.end()
    return [each.latency for each in alerts.received[loaded.name]], cost


def _points(values: list[float]) -> tuple[float, float]:
    found = quantiles(values, n=20)
    return found[9], found[18]
