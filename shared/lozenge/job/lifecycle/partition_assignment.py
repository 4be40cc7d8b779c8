"""Which partitions of its input a job processes: all, or those assigned to it as one of several instances."""

from lozenge.contracts.record import Partition
from lozenge.job.identity import Identity
from lozenge.kafka.group_membership import Membership
from lozenge.kafka.settings import KafkaSettings


class PartitionAssignment:
    """The partitions that a job has `claimed`. It is a member of its detector's group from `assigned` to `leave`."""

    def __init__(self, kafka: KafkaSettings, identity: Identity) -> None:
        self._kafka, self._identity = kafka, identity
        self._membership: Membership | None = None
        self.claimed: frozenset[int] = frozenset()
        self.exclusive = False
        """Whether the job has claimed all partitions, as the only instance."""

    def assigned(self) -> frozenset[int]:
        """The partitions to process, none at first. Call it at a batch boundary: revoked partitions move now."""
        self.exclusive = False
        if self._membership is None:
            self._membership = Membership(self._kafka, self._identity.app, [self._identity.input])
            self._membership.join()
        return _numbers(self._membership.settle())

    @property
    def changed(self) -> bool:
        """Whether the assigned partitions differ from the claimed ones."""
        return self._membership is not None and _numbers(self._membership.partitions) != self.claimed

    def leave(self) -> None:
        """Leaves the group, if the job is a member."""
        if self._membership is not None:
            self._membership.leave()
            self._membership, self.claimed = None, frozenset()


def _numbers(partitions: frozenset[Partition]) -> frozenset[int]:
    return frozenset(partition for _, partition in partitions)
