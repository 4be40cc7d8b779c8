"""The breaker: a job whose code raises on too much of its input is parked, and all can see it.

What it could not judge stays where it is: nothing was committed, so nothing is lost. It tries again now and then, and
at once when it is ordered otherwise.
"""

from lozenge.errors import Flood
from lozenge.metrics.app_metrics import Metrics
from lozenge.process.logging import logger
from lozenge.protocol.job_status import JobStatusReporter

TRY_AGAIN_SECONDS = 60.0


class CircuitBreaker:
    """Tells report and metrics whether the job is parked; the log, why."""

    def __init__(self, reporting: JobStatusReporter, metrics: Metrics) -> None:
        self._reporting, self._metrics = reporting, metrics

    def trip(self, flood: Flood) -> None:
        """It is parked; said at every try."""
        logger().error(f"parked: {flood.message}", hint=flood.hint, kind=type(flood).__name__)
        self._reporting.say(parked=flood.message)
        self._metrics.parked(True)

    def reset(self) -> None:
        """A batch was committed, or an order has changed it: it is parked no longer."""
        if self._reporting.now.parked:
            logger().info("goes on where it was parked")
            self._reporting.say(parked="")
            self._metrics.parked(False)
