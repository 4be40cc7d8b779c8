"""The kinds of detectors, and what follows from each."""

from enum import StrEnum


class DetectorKind(StrEnum):
    """What the alerts of a detector depend on: one event, counts in windows, or state per key."""

    RULE = "rule"
    AGGREGATE = "aggregate"
    STATEFUL = "stateful"

    @property
    def stateless(self) -> bool:
        """Whether the alerts on an event depend on that event alone, so that it can be processed again by itself."""
        return self is DetectorKind.RULE

    @property
    def fits_instances(self) -> bool:
        """Whether several instances can share the partitions: not where the state is in the checkpoint of one."""
        return self is not DetectorKind.AGGREGATE
