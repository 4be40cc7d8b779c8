"""A paused job says why, in its status and its metrics, until it resumes."""

from typing import Any

from lozenge.errors import Flood
from lozenge.job.lifecycle.circuit_breaker import CircuitBreaker
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.metrics.app_metrics import JobMetrics

FLOOD = Flood("the detector raises on 10 of the first 10 records", hint="fix the detector")


def is_open(metrics: JobMetrics) -> Any:
    return metrics.snapshot()["samples"]["lozenge_breaker_open"]


def test_the_circuit_is_open_until_it_is_closed() -> None:
    reporter, metrics = JobStatusReporter(None), JobMetrics("card_velocity", "one", "r1")
    circuit = CircuitBreaker(reporter, metrics)
    circuit.close()
    assert (reporter.status.circuit_open, is_open(metrics)) == ("", 0.0)
    circuit.open(FLOOD)
    assert (reporter.status.circuit_open, is_open(metrics)) == (FLOOD.message, 1.0)
    circuit.close()
    assert (reporter.status.circuit_open, is_open(metrics)) == ("", 0.0)
