"""Which detector of a draining host moves next: one at a time, by the exact cut-over of a restart."""

from collections.abc import Iterable, Mapping

from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal

MOVE = "host move"
"""What the spec of such a restart is called in the history."""


def next_to_move(
    deployed: Iterable[tuple[DeploymentSpec, DeploymentStatus]], draining: Mapping[str, str]
) -> tuple[DeploymentSpec, str] | None:
    """The detector that is to be restarted now, with the reason; None while another one moves or is being changed.

    `draining` are the hosts that detectors are to move from, each with the reason. A detector whose move failed is left
    where it is until its next change.
    """
    found: tuple[DeploymentSpec, str] | None = None
    for spec, status in deployed:
        if spec.goal is not Goal.RUNNING:
            continue
        is_settled = spec.revision == status.revision and status.outcome in (ChangeOutcome.DONE, ChangeOutcome.FAILED)
        if spec.what == MOVE and not is_settled:
            return None
        hosts = [one.spark_host for one in status.instances or [status]]
        reason = next((draining[host] for host in hosts if host in draining), "")
        failed_before = spec.what == MOVE and status.outcome is ChangeOutcome.FAILED
        if reason and is_settled and status.phase is DetectorPhase.RUNNING and not failed_before and found is None:
            found = spec, reason
    return found


def moved(spec: DeploymentSpec, revision: str, reason: str) -> DeploymentSpec:
    """The spec that replaces the process of a detector by another one of the same release, on another host."""
    changes = {"revision": revision, "what": MOVE, "by": "agent", "message": reason}
    return spec.updated(**changes, restart=spec.restart + 1, state="keep", undoes="", before=None)
