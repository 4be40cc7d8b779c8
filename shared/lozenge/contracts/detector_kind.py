"""The kinds of detectors, and what follows from each."""

from enum import StrEnum


class DetectorKind(StrEnum):
    """What the alerts of a detector depend on: one event, counts in windows, or state per key.

    Code asks for the properties of a kind, and does not compare kinds: a further kind is a member with properties.
    """

    RULE = "rule"
    AGGREGATE = "aggregate"
    STATEFUL = "stateful"

    @property
    def stateless(self) -> bool:
        """Whether the alerts on an event depend on that event alone, so that it can be processed again by itself."""
        return self is DetectorKind.RULE

    @property
    def state_in_topic(self) -> bool:
        """Whether the job evaluates a fold, whose state per key is in the detector's state topic."""
        return self is DetectorKind.STATEFUL

    @property
    def state_in_checkpoint(self) -> bool:
        """Whether Spark counts, so that batches depend on each other and on the checkpoint of their query."""
        return self is DetectorKind.AGGREGATE

    @property
    def needs_batches(self) -> bool:
        """Whether it can be evaluated batch by batch only, and not event by event."""
        return self.state_in_topic

    @property
    def fits_instances(self) -> bool:
        """Whether several instances can share the partitions: not where the state is in the checkpoint of one."""
        return not self.state_in_checkpoint
