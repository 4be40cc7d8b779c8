"""What a release does with the state of the previous one: what a policy does, and when it is refused.

"keep" continues with the stored state, "rebuild" folds the retained events again, "fresh" starts empty.
"""

from lozenge.detector.description import Description
from lozenge.detector.state_schema import refusal
from lozenge.durations import duration, text_of
from lozenge.errors import UsageError

POLICIES = ("keep", "rebuild", "fresh")


def refused(old: Description | None, new: Description, policy: str) -> UsageError | None:
    """Why `new` cannot replace `old` with that policy; None if it can. Raises UsageError for an unknown policy."""
    doing = f"deploying {new.detector}"
    if policy not in POLICIES:
        raise UsageError(f"{doing}: unknown state policy {policy}", hint="keep, rebuild or fresh")
    shape = new.state_shape
    if old is None or shape is None:
        return None
    none = f"the previous release is of kind {old.kind} and has no state"
    reason = refusal(old.state_shape, shape) if old.state_shape is not None else none
    if policy == "keep" and reason:
        return UsageError(
            f"{doing}: its state cannot be kept: {reason}",
            hint="--state rebuild folds the retained events again, --state fresh starts empty",
        )
    kept, needed = new.stream.retention, duration(shape["expires"])
    if policy == "rebuild" and needed > kept:
        return UsageError(
            f"{doing}: its state reaches back {text_of(needed)}, but events are retained for {text_of(kept)}: "
            "rebuilt state would be incomplete",
            hint="--state keep continues with the stored state, --state fresh starts empty",
        )
    return None


def rollback_policy(new: Description, old: Description) -> str:
    """The default state policy of `old` where it replaces `new` again."""
    return "keep" if refused(new, old, "keep") is None else "rebuild"


def consequence(old: Description | None, new: Description, policy: str) -> str | None:
    """What happens to the state, for people; None for a detector without state."""
    if new.declaration.stateless:
        return None
    if old is None:
        return "starts empty"
    if policy == "fresh":
        return "fresh: starts empty and discards the stored state"
    if new.kind.state_in_checkpoint:
        return f"{policy}: counts its open windows again while it is a standby"
    if policy == "keep":
        return "keep: continues with the stored state"
    return "rebuild: folds all retained events again while it is a standby; publishes none of their alerts again"
