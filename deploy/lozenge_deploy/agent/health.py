"""When a live job counts as unhealthy: rules over its status and its exits, without processes or clocks.

During the watch window an unhealthy job is rolled back; later it is only restarted. Time without a broker does not
count: the caller says for how long the broker has been available.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from lozenge.protocol.job_status import JobStatus

CRASH_LOOP_EXITS, CRASH_LOOP_SECONDS = 3, 300.0
"""So many exits within this time are a crash loop."""
ERROR_RATE, MIN_DEAD_LETTERS = 0.01, 10
"""A higher share of dead letters among the records is unhealthy, from that many dead letters."""
STUCK_TRIGGERS, STUCK_SECONDS = 3, 30.0
"""A live query that ends no batch within so many triggers plus this time is stuck."""
GROWING_SECONDS, SAMPLE_SECONDS = 60.0, 5.0
"""A lag that grows from sample to sample for so long is unhealthy."""
MAX_BACKOFF_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Health:
    """The record of one live job since its present release went live."""

    exits: tuple[float, ...] = ()
    _in_a_row: int = 0
    _lags: tuple[tuple[float, int], ...] = ()
    _first: JobStatus | None = None

    def exited(self, now: float) -> "Health":
        """The record after its process has exited without a request to stop."""
        in_a_row = self._in_a_row + 1 if self.exits and now - self.exits[-1] < CRASH_LOOP_SECONDS else 1
        return replace(self, exits=(*self._recent(now), now), _in_a_row=in_a_row)

    def backoff(self) -> float:
        """Seconds before its restart: 0 after the first exit, then 1, 2, 4 ... up to a minute."""
        return min(2.0 ** (self._in_a_row - 2), MAX_BACKOFF_SECONDS) if self._in_a_row > 1 else 0.0

    def crash_loop(self, now: float) -> str:
        """How often it has exited recently, if that is a crash loop; else ""."""
        exits = len(self._recent(now))
        return (
            f"it exited {exits} times within {CRASH_LOOP_SECONDS / 60:.0f} minutes" if exits >= CRASH_LOOP_EXITS else ""
        )

    def sampled(self, status: JobStatus, now: float) -> "Health":
        """The record with one more status; `now` in Unix seconds."""
        first = self._first if self._first and self._first.pid == status.pid else status
        lags = self._lags
        if lags and now - lags[-1][0] > 3 * SAMPLE_SECONDS:
            lags = ()  # no samples for a while
        if not lags or now - lags[-1][0] >= SAMPLE_SECONDS:
            lags = (*(() if lags and status.lag <= lags[-1][1] else lags), (now, status.lag))
        return replace(self, _first=first, _lags=lags)

    def problem(self, status: JobStatus, now: float, trigger: timedelta, broker_stable_seconds: float) -> str:
        """Why the job with this status is unhealthy, "" if it is not. The status was `sampled` last."""
        if loop := self.crash_loop(now):
            return loop
        if status.circuit_open:
            return f"its circuit is open: {status.circuit_open}"
        if stuck(status, now, trigger, broker_stable_seconds):
            return f"no batch has ended for {now - status.last_progress_at:.0f} s"
        first = self._first or status
        records, dead_letters = status.records - first.records, status.dead_letters - first.dead_letters
        if dead_letters >= MIN_DEAD_LETTERS and dead_letters > ERROR_RATE * records:
            return f"{dead_letters} of {records} records became dead letters"
        if self._lags and self._lags[-1][0] - self._lags[0][0] >= GROWING_SECONDS:
            return f"its lag grew for {GROWING_SECONDS:.0f} s, to {status.lag}"
        return ""

    def _recent(self, now: float) -> tuple[float, ...]:
        return tuple(exit for exit in self.exits if exit >= now - CRASH_LOOP_SECONDS)


def stuck(
    status: JobStatus, now: float, trigger: timedelta, broker_stable_seconds: float, limit: float = STUCK_SECONDS
) -> bool:
    """Whether no batch has ended for too long; time without a broker does not count."""
    idle = min(now - status.last_progress_at, broker_stable_seconds)
    return idle > STUCK_TRIGGERS * trigger.total_seconds() + limit
