"""When a live job counts as ill: rules over its reports and its exits, without any process or clock of their own.

After a change they lead back to the release before; later an ill job is only started again. A broker that is away
makes nobody ill: whoever asks leaves that time out.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta

from lozenge.protocol.job_status import JobStatus

EXITS, EXIT_SECONDS = 3, 300.0
"""So many exits within this time are a crash loop."""
ERROR_RATE, ENOUGH_LETTERS = 0.01, 10
"""More dead letters than this share of the records, once there are enough to tell."""
TURNS, TURN_SECONDS = 3, 30.0
"""A live query comes to the end of a batch within so many triggers and this time."""
GROWING_SECONDS, SAMPLE_SECONDS = 60.0, 5.0
"""A lag that grew from sample to sample throughout so long a time will not come down."""
LONGEST_WAIT = 60.0


@dataclass
class Health:
    """What is known of one live job since it went live with its present release."""

    exits: deque[float] = field(default_factory=deque)
    _in_a_row: int = 0
    _lags: deque[tuple[float, int]] = field(default_factory=deque)
    _first: JobStatus | None = None

    def exited(self, now: float) -> None:
        """Its process ended, though nobody asked for it."""
        self._in_a_row = self._in_a_row + 1 if self.exits and now - self.exits[-1] < EXIT_SECONDS else 1
        self.exits.append(now)
        self._forget(now)

    def wait(self) -> float:
        """Seconds before it is started again: 0 after the first exit, then 1, 2, 4 ... a minute."""
        return min(2.0 ** (self._in_a_row - 2), LONGEST_WAIT) if self._in_a_row > 1 else 0.0

    def crash_loop(self, now: float) -> str:
        """How often it ended lately, if that is too often; else ""."""
        self._forget(now)
        if len(self.exits) < EXITS:
            return ""
        return f"it ended {len(self.exits)} times within {EXIT_SECONDS / 60:.0f} minutes"

    def illness(self, report: JobStatus, now: float, trigger: timedelta, calm: float) -> str:
        """Why it is ill, "" if it is not; `now` in Unix seconds, the broker has answered for `calm` seconds."""
        if loop := self.crash_loop(now):
            return loop
        if report.circuit_open:
            return f"it is parked: {report.circuit_open}"
        if stuck(report, now, trigger, calm):
            return f"no batch has ended for {now - report.last_progress_at:.0f} s"
        first = self._first = self._first if self._first and self._first.pid == report.pid else report
        records, letters = report.records - first.records, report.dead_letters - first.dead_letters
        if letters >= ENOUGH_LETTERS and letters > ERROR_RATE * records:
            return f"{letters} of {records} records became dead letters"
        if self._lag_grows(report.lag, now):
            return f"it falls behind: its lag grew to {report.lag} throughout {GROWING_SECONDS:.0f} s"
        return ""

    def _forget(self, now: float) -> None:
        while self.exits and self.exits[0] < now - EXIT_SECONDS:
            self.exits.popleft()

    def _lag_grows(self, lag: int, now: float) -> bool:
        if self._lags and now - self._lags[-1][0] > 3 * SAMPLE_SECONDS:
            self._lags.clear()  # nobody looked meanwhile
        if not self._lags or now - self._lags[-1][0] >= SAMPLE_SECONDS:
            if self._lags and lag <= self._lags[-1][1]:
                self._lags.clear()
            self._lags.append((now, lag))
        return self._lags[-1][0] - self._lags[0][0] >= GROWING_SECONDS


def stuck(report: JobStatus, now: float, trigger: timedelta, calm: float, patience: float = TURN_SECONDS) -> bool:
    """Whether a live query should have come to the end of a batch long ago; only calm time counts."""
    return min(now - report.last_progress_at, calm) > TURNS * trigger.total_seconds() + patience
