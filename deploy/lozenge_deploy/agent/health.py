"""When a live job counts as unhealthy: rules over its status and its exits, without processes or clocks.

During the watch window an unhealthy job is rolled back; later it is only restarted. Time without a broker does not
count: the caller says for how long the broker has been available.
"""

from collections import deque
from dataclasses import dataclass, field
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


@dataclass
class Health:
    """The record of one live job since its present release went live."""

    exits: deque[float] = field(default_factory=deque)
    _in_a_row: int = 0
    _lags: deque[tuple[float, int]] = field(default_factory=deque)
    _first: JobStatus | None = None

    def exited(self, now: float) -> None:
        """Its process has exited without a request to stop."""
        self._in_a_row = self._in_a_row + 1 if self.exits and now - self.exits[-1] < CRASH_LOOP_SECONDS else 1
        self.exits.append(now)
        self._forget(now)

    def backoff(self) -> float:
        """Seconds before its restart: 0 after the first exit, then 1, 2, 4 ... up to a minute."""
        return min(2.0 ** (self._in_a_row - 2), MAX_BACKOFF_SECONDS) if self._in_a_row > 1 else 0.0

    def crash_loop(self, now: float) -> str:
        """How often it has exited recently, if that is a crash loop; else ""."""
        self._forget(now)
        if len(self.exits) < CRASH_LOOP_EXITS:
            return ""
        return f"it exited {len(self.exits)} times within {CRASH_LOOP_SECONDS / 60:.0f} minutes"

    def problem(self, status: JobStatus, now: float, trigger: timedelta, broker_stable_seconds: float) -> str:
        """Why it is unhealthy, "" if it is not; `now` in Unix seconds."""
        if loop := self.crash_loop(now):
            return loop
        if status.circuit_open:
            return f"its circuit is open: {status.circuit_open}"
        if stuck(status, now, trigger, broker_stable_seconds):
            return f"no batch has ended for {now - status.last_progress_at:.0f} s"
        first = self._first = self._first if self._first and self._first.pid == status.pid else status
        records, dead_letters = status.records - first.records, status.dead_letters - first.dead_letters
        if dead_letters >= MIN_DEAD_LETTERS and dead_letters > ERROR_RATE * records:
            return f"{dead_letters} of {records} records became dead letters"
        if self._lag_grows(status.lag, now):
            return f"its lag grew for {GROWING_SECONDS:.0f} s, to {status.lag}"
        return ""

    def _forget(self, now: float) -> None:
        while self.exits and self.exits[0] < now - CRASH_LOOP_SECONDS:
            self.exits.popleft()

    def _lag_grows(self, lag: int, now: float) -> bool:
        if self._lags and now - self._lags[-1][0] > 3 * SAMPLE_SECONDS:
            self._lags.clear()  # no samples for a while
        if not self._lags or now - self._lags[-1][0] >= SAMPLE_SECONDS:
            if self._lags and lag <= self._lags[-1][1]:
                self._lags.clear()
            self._lags.append((now, lag))
        return self._lags[-1][0] - self._lags[0][0] >= GROWING_SECONDS


def stuck(
    status: JobStatus, now: float, trigger: timedelta, broker_stable_seconds: float, limit: float = STUCK_SECONDS
) -> bool:
    """Whether no batch has ended for too long; time without a broker does not count."""
    idle = min(now - status.last_progress_at, broker_stable_seconds)
    return idle > STUCK_TRIGGERS * trigger.total_seconds() + limit
