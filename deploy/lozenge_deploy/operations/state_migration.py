"""What a release does with the memory of the one before: what follows from a policy, and when it is refused.

"keep" goes on with what is stored, "rebuild" makes it again of the retained events, "fresh" begins without any.
"""

from lozenge.contracts import topics
from lozenge.detector.state_schema import refusal
from lozenge.durations import duration, text_of
from lozenge.errors import UsageError
from lozenge.job.tools.describe import Description

POLICIES = ("keep", "rebuild", "fresh")
_RETENTION = "retention.ms"


def refused(old: Description | None, new: Description, policy: str) -> UsageError | None:
    """Why `new` cannot begin so in the place of `old`; None if it can. Raises UsageError for an unknown policy."""
    doing = f"deploying {new.detector}"
    if policy not in POLICIES:
        raise UsageError(f"{doing}: there is no state policy {policy}", hint="keep, rebuild or fresh")
    shape = new.state_shape
    if old is None or shape is None:
        return None
    none = f"the release before is of kind {old.kind} and stores none"
    reason = refusal(old.state_shape, shape) if old.state_shape is not None else none
    if policy == "keep" and reason:
        return UsageError(
            f"{doing}: its state cannot be kept: {reason}",
            hint="--state rebuild folds the retained events anew, --state fresh begins empty",
        )
    kept, needed = duration(f"{_retained_ms()}ms"), duration(shape["expires"])
    if policy == "rebuild" and needed > kept:
        return UsageError(
            f"{doing}: its state reaches back {text_of(needed)}, but events are kept for {text_of(kept)}: "
            "what is rebuilt would lack the rest",
            hint="--state keep goes on with what is stored, --state fresh begins empty",
        )
    return None


def way_back(new: Description, old: Description) -> str:
    """What `old` begins with where it takes over from `new`, unless somebody says otherwise."""
    return "keep" if refused(new, old, "keep") is None else "rebuild"


def consequence(old: Description | None, new: Description, policy: str) -> str | None:
    """What becomes of the memory, for a person; None for a detector without any."""
    if new.kind not in ("stateful", "aggregate"):
        return None
    if old is None:
        return "begins empty"
    if policy == "fresh":
        return "fresh: begins empty, and forgets what was remembered"
    if new.kind == "aggregate":
        return f"{policy}: counts its open windows again while it stands by"
    if policy == "keep":
        return "keep: goes on with what is stored"
    return "rebuild: folds all retained events anew while it stands by; nothing of that is told again"


def _retained_ms() -> int:
    return next(int(topic.config[_RETENTION]) for topic in topics.platform_topics() if topic.name == topics.EVENTS)
