"""A reporter publishes what its meter has read; a broker that is away costs neither time nor the app."""

import time
from typing import Any

from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process.usage import Cost, Meter

NOBODY = KafkaSettings(bootstrap="127.0.0.1:1")


class Measured:
    """A meter whose process costs a second and a megabyte more at each reading."""

    def __init__(self) -> None:
        self.readings = 0

    def read(self) -> Cost:
        self.readings += 1
        return Cost(float(self.readings), self.readings * 2**20)


def cost_in(metrics: JobMetrics) -> tuple[float, float]:
    samples: dict[str, Any] = metrics.snapshot()["samples"]
    return samples["lozenge_cpu_seconds_total"], samples["lozenge_memory_bytes"]


def test_each_snapshot_has_the_cost_that_the_given_meter_reads() -> None:
    metrics, meter = JobMetrics("one"), Measured()
    reporter = Reporter(metrics, NOBODY, meter=meter)
    reporter.publish()
    assert cost_in(metrics) == (1.0, 2.0**20)
    reporter.publish()
    assert cost_in(metrics) == (2.0, 2.0**21)


def test_the_cost_is_read_while_it_is_entered_and_once_more_at_the_end() -> None:
    metrics, meter = JobMetrics("one"), Measured()
    with Reporter(metrics, NOBODY, interval=0.01, meter=meter):
        deadline = time.monotonic() + 30
        while meter.readings < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        before = meter.readings
    assert before >= 3
    assert meter.readings > before
    assert cost_in(metrics)[0] == meter.readings


def test_without_a_meter_the_cost_is_that_of_this_process() -> None:
    metrics = JobMetrics("one")
    used = Meter().read()
    Reporter(metrics, NOBODY).publish()
    seconds, memory = cost_in(metrics)
    assert used.cpu_seconds <= seconds < used.cpu_seconds + 60
    assert memory > 2**20


def test_a_broker_that_is_away_costs_snapshots_and_nothing_else() -> None:
    reporter = Reporter(JobMetrics("one"), NOBODY, meter=Measured())
    began = time.monotonic()
    for _ in range(500):  # more than wait for a broker
        reporter.publish()
    assert time.monotonic() - began < 10
