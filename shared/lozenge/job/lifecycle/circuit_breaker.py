"""The breaker: a job whose code raises on too much of its input is parked, and all can see it.

What it could not judge stays where it is: nothing was committed, so nothing is lost. It tries again now and then, and
at once when it is ordered otherwise.
"""

from lozenge.errors import Flood
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger

TRY_AGAIN_SECONDS = 60.0


class CircuitBreaker:
    """Tells report and metrics whether the job is parked; the log, why."""

    def __init__(self, reporter: JobStatusReporter, metrics: Metrics) -> None:
        self._reporter, self._metrics = reporter, metrics

    def trip(self, flood: Flood) -> None:
        """It is parked; said at every try."""
        logger().error(f"parked: {flood.message}", hint=flood.hint, kind=type(flood).__name__)
        self._reporter.update(circuit_open=flood.message)
        self._metrics.parked(True)

    def reset(self) -> None:
        """A batch was committed, or an order has changed it: it is parked no longer."""
        if self._reporter.status.circuit_open:
            logger().info("goes on where it was parked")
            self._reporter.update(circuit_open="")
            self._metrics.parked(False)
