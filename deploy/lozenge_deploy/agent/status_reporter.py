"""What a controller reports of its detector: the status, the history, and the spec to which it rolls back."""

from collections.abc import Callable
from uuid import uuid4

from lozenge_deploy.agent.observation import JobView
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, now


class StatusReporter:
    """Passes changes of the status to `on_status`, events to `on_event`, and the spec of a rollback to `on_rollback`.

    `status` is the newest status.
    """

    def __init__(
        self,
        status: DeploymentStatus,
        on_status: Callable[[DeploymentStatus], None],
        on_event: Callable[[HistoryEvent], None],
        on_rollback: Callable[[DeploymentSpec], None],
    ) -> None:
        self.status = status
        self._on_status, self._on_event, self._on_rollback = on_status, on_event, on_rollback

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
        self._on_rollback(before.model_copy(update={**changes, "undoes": spec.revision}))
