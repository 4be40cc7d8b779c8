"""Which partitions of its input a job judges: all of them, or its share as one of several instances."""

from lozenge.job.identity import Identity
from lozenge.kafka.group_membership import Membership, PartitionState
from lozenge.kafka.settings import KafkaSettings


class PartitionAssignment:
    """What a job has `claimed` of its input; a member of its detector's group from `given` to `leave`."""

    def __init__(self, kafka: KafkaSettings, identity: Identity) -> None:
        self._kafka, self._identity = kafka, identity
        self._members: Membership | None = None
        self.claimed: frozenset[int] = frozenset()
        self.alone = False

    def given(self) -> frozenset[int]:
        """What it is to judge now, none at first; call it while it judges nothing, for what has to move moves now."""
        self.alone = False
        if self._members is None:
            self._members = Membership(self._kafka, self._identity.app, [self._identity.input])
            self._members.join()
        return _partitions(self._members.settle())

    @property
    def moved(self) -> bool:
        """Whether it has been given other partitions than it has claimed."""
        return self._members is not None and _partitions(self._members.slots) != self.claimed

    def leave(self) -> None:
        """Gives all up, if it shared anything."""
        if self._members is not None:
            self._members.leave()
            self._members, self.claimed = None, frozenset()


def _partitions(slots: frozenset[PartitionState]) -> frozenset[int]:
    return frozenset(partition for _, partition in slots)
