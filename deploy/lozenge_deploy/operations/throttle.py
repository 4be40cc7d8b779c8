"""Throttling of a detector: batches have a size and an interval, Real-Time Mode has only an interval of commits."""

from collections.abc import Mapping
from typing import Any

from lozenge.durations import duration, text_of
from lozenge.errors import UsageError
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.operations.release_diff import Rows
from lozenge_deploy.releases.release import Release


def refused(release: Release, given: Mapping[str, Any]) -> UsageError | None:
    """Why a release cannot take the `max_batch`, `rate` and `trigger` in `given`; None if it can."""
    if not release.declaration.realtime:
        return None
    name = release.detector
    for option in ("max_batch", "rate"):
        if given.get(option) is not None:
            return UsageError(
                f"setting {option} of {name}: in Real-Time Mode events are processed one by one, not in batches",
                hint='omit it, or deploy the detector with mode = "micro-batch"',
            )
    if (trigger := given.get("trigger")) is not None and (
        why := release.declaration.refused_trigger(duration(trigger))
    ):
        return UsageError(f"setting trigger of {name}: {why}", hint=f"`lozenge set {name} --trigger 10s`")
    return None


def reset_by_mode(present: DeploymentSpec | None, current: Release | None, new: Release) -> dict[str, None]:
    """The throttle settings that a change of mode resets, because they mean something else in the other mode."""
    if present is None or current is None or current.declaration.realtime == new.declaration.realtime:
        return {}
    return {name: None for name in ("trigger", "max_batch") if getattr(present, name) is not None}


def rows(present: DeploymentSpec | None, reset: Mapping[str, None], new: Release) -> Rows:
    """How the settings in `reset` change back to what `new` declares."""
    if present is None:
        return []
    current, declared = present.model_dump(mode="json"), new.declaration.model_dump(mode="json")
    return [{"field": f"set {name}", "current": current[name], "new": declared[name]} for name in reset]


def repeats(release: Release, spec: DeploymentSpec | None) -> str | None:
    """How many alerts a crash may repeat at most; None if it cannot repeat any."""
    declared = release.declaration
    if declared.guarantee != "at-least-once" or (declared.realtime and declared.kind.state_in_checkpoint):
        return None  # an aggregate in Real-Time Mode always skips what it finds published
    if declared.realtime:
        trigger = (spec and spec.trigger) or declared.trigger
        return f"a crash may repeat the alerts of the last {text_of(trigger)}"
    return f"a crash may repeat the alerts of {(spec and spec.max_batch) or declared.max_batch} events at most"
