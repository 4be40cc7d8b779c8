"""Which alerts a job has to skip: those that were published before the offsets of their events were committed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lozenge.job.batch_result import DraftAlert


@dataclass(frozen=True, slots=True)
class ResumeFilter:
    """The ids of alerts that are `published`, all of events before the offsets `until`; by default there are none."""

    published: frozenset[str] = frozenset()
    until: Mapping[int, int] = field(default_factory=dict)

    def unpublished(self, drafts: Sequence[DraftAlert], id_of: Callable[[DraftAlert], str]) -> Sequence[DraftAlert]:
        """Those of `drafts` that have to be published."""
        if not self.published:
            return drafts
        return [draft for draft in drafts if id_of(draft) not in self.published]

    def after(self, offsets: Mapping[int, int]) -> "ResumeFilter":
        """What there is to skip once `offsets` are committed: all of it, until they are past `until`."""
        reached = all(offset >= self.until.get(p, 0) for p, offset in offsets.items())
        return ResumeFilter() if reached else self
