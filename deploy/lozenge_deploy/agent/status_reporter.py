"""What a keeper has to say of its detector: how it is, what happened, and what to wish where it goes back."""

from collections.abc import Callable
from uuid import uuid4

from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, Outcome, now
from lozenge_deploy.supervision.job_process import JobProcess


class StatusReporter:
    """Through `say`, `tell` and `wish` it reaches the status, the history and the desired state of a detector.

    `observed` is what it said last.
    """

    def __init__(
        self,
        observed: DeploymentStatus,
        say: Callable[[DeploymentStatus], None],
        tell: Callable[[HistoryEvent], None],
        wish: Callable[[DeploymentSpec], None],
    ) -> None:
        self.observed = observed
        self._say, self._tell, self._wish = say, tell, wish

    def note(self, **changes: object) -> None:
        """Says how the detector is, if that differs from what was said last."""
        observed = self.observed.model_copy(update=changes)
        if observed != self.observed:
            self.observed = observed.model_copy(update={"at": now()})
            self._say(self.observed)

    def happened(self, what: str, instance: JobProcess | None = None, detail: str = "") -> None:
        """Tells the history of something that happened, to `instance` if to any."""
        facts = instance.record if instance is not None else None
        report = instance.status() if instance is not None else None
        self._tell(
            HistoryEvent(
                detector=self.observed.detector,
                what=what,
                release=facts.release if facts else "",
                generation=max(facts.generation if facts else 0, report.generation if report else 0),
                by="agent",
                detail=detail,
            )
        )

    def fall_back(self, desired: DeploymentSpec, reason: str) -> None:
        """Wishes what was before; without that, only says why it is not well. A change that once was good stays.

        It goes back by one step: what was before is watched in its turn, if it still was when this change came.
        """
        before = desired.before
        if before is not None and self.observed.outcome not in (Outcome.WORKING, Outcome.WATCHED):
            return
        self.note(outcome=Outcome.FAILED, reason=reason)
        if before is None:
            return
        what = "rolled back" if before.release != desired.release else "undone"  # the release itself may be good
        self._tell(
            HistoryEvent(detector=desired.detector, what=what, release=desired.release, by="agent", detail=reason)
        )
        changes = {"revision": uuid4().hex[:12], "what": "roll back", "by": "agent", "message": reason, "at": now()}
        self._wish(before.model_copy(update={**changes, "undoes": desired.revision}))
