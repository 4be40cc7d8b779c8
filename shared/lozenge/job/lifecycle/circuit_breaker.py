"""The circuit breaker: a job whose code fails on too much of its input is paused, and reports why.

A paused job commits nothing, so nothing is lost. It retries once a minute, and at once when its spec changes.
"""

from lozenge.errors import Flood
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.process.logging import logger

RETRY_INTERVAL_SECONDS = 60.0


class CircuitBreaker:
    """Reports in status, metrics and log whether the circuit is open."""

    def __init__(self, reporter: JobStatusReporter, metrics: JobMetrics) -> None:
        self._reporter, self._metrics = reporter, metrics

    def open(self, flood: Flood) -> None:
        """The job is paused because of `flood`; logged at every failed attempt."""
        logger().error(f"circuit open, paused: {flood.message}", hint=flood.hint, kind=type(flood).__name__)
        self._reporter.update(circuit_open=flood.message)
        self._metrics.health(circuit_open=True)

    def close(self) -> None:
        """A batch was committed or the spec has changed: the job resumes if it was paused."""
        if self._reporter.status.circuit_open:
            logger().info("circuit closed, resumed")
            self._reporter.update(circuit_open="")
            self._metrics.health(circuit_open=False)
