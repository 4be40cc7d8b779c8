"""When a job that has exited may be started again. Pure: the clock is an argument."""

from dataclasses import dataclass, field, replace

from lozenge_deploy.agent.health import Health

NO_BROKER, NO_BROKER_SECONDS = 3, 1.0
"""The exit code of a job without a broker; what does not count as a crash is tried again after so many seconds."""
FAILED_START_SECONDS = 1.0
"""The shortest time between a start that failed and the next one."""


@dataclass(frozen=True, slots=True)
class StartBackoff:
    """The exits of the jobs of one revision. Their `health` decides the backoff."""

    health: Health = field(default_factory=Health)
    next_start_at: float = 0.0

    def exited(self, now: float, *, counts: bool) -> "StartBackoff":
        """The state after an exit, which counts as a crash or, as one without a broker, does not."""
        if not counts:
            return self.not_counted(now)
        health = self.health.exited(now)
        return StartBackoff(health, now + health.backoff())

    def start_failed(self, now: float) -> "StartBackoff":
        """The state after a start that the release or the machine did not allow. It counts as a crash."""
        health = self.health.exited(now)
        return StartBackoff(health, now + max(FAILED_START_SECONDS, health.backoff()))

    def not_before(self, at: float) -> "StartBackoff":
        """The state in which no start comes before `at`, if another revision of the spec does not come first."""
        return replace(self, next_start_at=max(at, self.next_start_at))

    def not_counted(self, now: float) -> "StartBackoff":
        """The state after an end or a failed start that is no crash: earlier crashes delay the next start no longer."""
        return replace(self, next_start_at=now + NO_BROKER_SECONDS)
