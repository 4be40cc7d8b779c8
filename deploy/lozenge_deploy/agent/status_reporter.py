"""What a controller reports of its detector: the status, the history, and the spec to which it rolls back."""

from collections.abc import Callable
from uuid import uuid4

from lozenge.contracts.isolation import Isolation
from lozenge_deploy.agent.observation import JobView
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, now


class StatusReporter:
    """Passes changes of the status to `on_status`, events to `on_event`, and a spec of the agent's to `on_change`.

    `status` is the newest status.
    """

    def __init__(
        self,
        status: DeploymentStatus,
        on_status: Callable[[DeploymentStatus], None],
        on_event: Callable[[HistoryEvent], None],
        on_change: Callable[[DeploymentSpec], None],
    ) -> None:
        self.status = status
        self._on_status, self._on_event, self._on_change = on_status, on_event, on_change

    def report(self, status: DeploymentStatus) -> None:
        """Reports the status if it differs from the newest one."""
        if status != self.status:
            self.status = status.model_copy(update={"at": now()})
            self._on_status(self.status)

    def record(self, what: str, job: JobView | None = None, detail: str = "") -> None:
        """Appends an event to the history, about `job` if given."""
        started = job.record if job is not None else None
        reported = job.status if job is not None else None
        self._on_event(
            HistoryEvent(
                detector=self.status.detector,
                what=what,
                release=started.release if started else "",
                generation=max(started.generation if started else 0, reported.generation if reported else 0),
                by="agent",
                detail=detail,
            )
        )

    def roll_back(self, spec: DeploymentSpec, reason: str) -> None:
        """Applies the spec before `spec`."""
        before = spec.before
        assert before is not None
        what = "rolled back" if before.release != spec.release else "undone"  # the release itself may be good
        self._on_event(HistoryEvent(detector=spec.detector, what=what, release=spec.release, by="agent", detail=reason))
        changes = {"revision": uuid4().hex[:12], "what": "roll back", "by": "agent", "message": reason, "at": now()}
        self._on_change(before.model_copy(update={**changes, "undoes": spec.revision}))

    def isolate(self, spec: DeploymentSpec, reason: str) -> None:
        """Applies `spec` with a JVM of its own."""
        self._on_event(HistoryEvent(detector=spec.detector, what="isolated", by="agent", detail=reason))
        changes = {"revision": uuid4().hex[:12], "what": "isolate", "by": "agent", "message": reason, "at": now()}
        self._on_change(spec.updated(**changes, isolation=Isolation.OWN))
