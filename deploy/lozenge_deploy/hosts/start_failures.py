"""When a host may be started after one that did not start."""

from dataclasses import dataclass

RETRY_SECONDS, MAX_RETRY_SECONDS = 10.0, 160.0
"""A host that did not start is followed by another one after so long; each further time after twice as long."""


@dataclass(slots=True)
class StartFailures:
    """`problem` is why the last host did not start; "" since one did. Times are Unix seconds."""

    problem: str = ""
    count: int = 0
    start_after: float = 0.0

    def failed(self, problem: str, now: float) -> None:
        """A host did not start."""
        self.problem = problem
        self.start_after = now + min(MAX_RETRY_SECONDS, RETRY_SECONDS * 2**self.count)
        self.count += 1

    def succeeded(self) -> None:
        """The newest host is ready."""
        self.problem, self.count = "", 0

    def may_start(self, now: float) -> bool:
        """Whether it is time for another one."""
        return now >= self.start_after
