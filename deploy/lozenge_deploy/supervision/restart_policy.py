"""When a process that has exited is started again: after a wait that grows with each exit, or never."""

from enum import StrEnum

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
SETTLED_SECONDS = 60.0
"""A process that ran this long is set up correctly: it is always restarted, and its next restart is quick again."""

USAGE = 2
"""The exit code of a usage or configuration error: a restart would only repeat it."""
FAILURE, FAILURES = 1, 3
"""The exit code of a failure, and how many in a row end the restarts of a process that never worked."""


class ProgramState(StrEnum):
    """The state of a supervised process. `ENDED` is a regular exit; after `FAILED` a person has to act."""

    RUNNING = "running"
    WAITING = "restarting"
    ENDED = "ended"
    FAILED = "failed"
    STOPPED = "stopped"


class RestartPolicy:
    """Decides on the restarts of one program from its exits so far. `finite`: exit code 0 is a good end."""

    def __init__(self, *, finite: bool) -> None:
        self._finite = finite
        self._again_at = 0.0
        self._wait = FIRST_WAIT
        self._failures = 0
        self._settled = False

    def exited(self, code: int, started_at: float, now: float) -> ProgramState:
        """The state after an unrequested exit; a negative code is a signal's. Both times are monotonic."""
        if now - started_at > SETTLED_SECONDS:
            self._wait, self._settled = FIRST_WAIT, True
        self._failures = self._failures + 1 if code == FAILURE and not self._settled else 0
        self._again_at, self._wait = now + self._wait, min(2 * self._wait, LONGEST_WAIT)
        if code == 0 and self._finite:
            return ProgramState.ENDED
        final = code == USAGE or self._finite or self._failures >= FAILURES
        return ProgramState.FAILED if final else ProgramState.WAITING

    def is_due(self, now: float) -> bool:
        """Whether the wait after the newest exit is over."""
        return now >= self._again_at
