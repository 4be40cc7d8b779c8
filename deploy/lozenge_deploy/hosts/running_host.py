"""A host of a pool: its process, and what the pool remembers of it."""

from dataclasses import dataclass, field

from lozenge.process.logging import logger
from lozenge_deploy.hosts.host_process import HostProcess
from lozenge_deploy.hosts.placement import HostPhase, HostView, Limits, reason_to_drain

END_SECONDS = 20.0
"""A host that was asked to end is killed after so long."""


@dataclass(slots=True)
class RunningHost:
    """`detectors` are those that run there, with their weights, and `awaited` those that waited for its start.

    `draining` is why they are to move; "" if they are not. Times are Unix seconds.
    """

    process: HostProcess
    detectors: dict[str, int] = field(default_factory=dict)
    placements: int = 0
    awaited: dict[str, int] = field(default_factory=dict)
    draining: str = ""
    used_at: float = 0.0
    ending_since: float | None = None

    def view(self, now: float) -> HostView:
        """The host as `placement` sees it."""
        phase = HostPhase.READY if self.process.ready() else HostPhase.STARTING
        return HostView(
            name=self.process.name,
            fingerprint=self.process.record.fingerprint,
            phase=HostPhase.DRAINING if self.draining else phase,
            detectors=self.detectors,
            placements=self.placements,
            age_seconds=now - self.process.record.started_at,
            idle_seconds=0.0 if self.detectors else now - self.used_at,
            awaited=self.awaited,
        )

    def tend(self, now: float, limits: Limits) -> str:
        """Kills it if it does not begin or end in time, and drains it if there is a reason; why it failed to begin.

        It does not end for want of clients while it is tended.
        """
        process = self.process
        process.attend()
        overdue = not process.ready() and now - process.record.started_at > limits.start_seconds
        if overdue and self.ending_since is None:
            self.ending_since = now
            process.kill()
            return f"Spark host {process.name} was killed, since it did not listen after {limits.start_seconds:g} s"
        if self.ending_since is not None and now - self.ending_since > END_SECONDS:
            process.kill()
        if not self.draining and (reason := reason_to_drain(self.view(now), limits)):
            self.draining = reason
            logger().info(f"draining Spark host {process.name}: {reason}", detectors=sorted(self.detectors))
        return ""

    def end(self, now: float) -> None:
        """Asks it to end, once."""
        if self.ending_since is None:
            self.ending_since = now
            self.draining = self.draining or "nothing runs there"
            logger().info(f"ending Spark host {self.process.name}: {self.draining}")
            self.process.terminate()
