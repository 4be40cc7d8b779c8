"""What paces a detector, by its mode: batches can be bounded, Real-Time Mode has commits alone."""

from collections.abc import Mapping
from typing import Any

from lozenge.durations import duration, text_of
from lozenge.errors import UsageError
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.operations.release_diff import Rows
from lozenge_deploy.releases.release import Release


def refused(release: Release, given: Mapping[str, Any]) -> UsageError | None:
    """Why `given`, of `max_batch`, `rate` and `trigger`, cannot be set of a release; None if they can."""
    if not release.declaration.realtime:
        return None
    name = release.detector
    for option in ("max_batch", "rate"):
        if given.get(option) is not None:
            return UsageError(
                f"setting {option} of {name}: in Real-Time Mode an event is judged when it comes, there are no batches",
                hint='leave it out, or deploy the detector with mode = "micro-batch"',
            )
    if (trigger := given.get("trigger")) is not None and (
        why := release.declaration.refused_trigger(duration(trigger))
    ):
        return UsageError(f"setting trigger of {name}: {why}", hint=f"`lozenge set {name} --trigger 10s`")
    return None


def left_behind(present: DeploymentSpec | None, now: Release | None, then: Release) -> dict[str, None]:
    """What was set of a detector and does not outlive a change of its mode: it meant something else there."""
    if present is None or now is None or now.declaration.realtime == then.declaration.realtime:
        return {}
    return {name: None for name in ("trigger", "max_batch") if getattr(present, name) is not None}


def rows(present: DeploymentSpec | None, left: Mapping[str, None], then: Release) -> Rows:
    """What becomes of what was set and is `left` behind: it is as declared again."""
    if present is None:
        return []
    was, declared = present.model_dump(mode="json"), then.declaration.model_dump(mode="json")
    return [{"what": f"set {name}", "now": was[name], "then": declared[name]} for name in left]


def repeats(release: Release, desired: DeploymentSpec | None) -> str | None:
    """The most that may be told again after a crash; None where nothing can be."""
    declared = release.declaration
    if declared.guarantee != "at-least-once" or (declared.realtime and declared.kind == "aggregate"):
        return None  # such an aggregate leaves out what it finds told, whatever it declares
    if declared.realtime:
        trigger = (desired and desired.trigger) or declared.trigger
        return f"a crash may repeat the alerts of the last {text_of(trigger)}"
    return f"a crash may repeat the alerts of {(desired and desired.max_batch) or declared.max_batch} events at most"
