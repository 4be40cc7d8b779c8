"""The consumer group as the one truth about how far a job has come.

Each committed offset carries `generation/checkpoint-id/batch-id`: who committed, and which batch of
which checkpoint that was. Offsets alone would not do: a batch without data, in which windows close,
has the same end offsets as the one before it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import TopicPartition

from lozenge.contracts.record import Partition
from lozenge.errors import StaleGeneration
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings

NO_CHECKPOINT = "-"
REALTIME = "realtime"
"""So begins the checkpoint's id of a job in Real-Time Mode."""


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Who committed an offset: its generation, the checkpoint's id and the batch."""

    generation: int
    checkpoint: str = NO_CHECKPOINT
    batch: int = -1

    @property
    def ahead(self) -> bool:
        """Whether alerts of events behind its offset may have been told."""
        return self.checkpoint.startswith(REALTIME)

    def __str__(self) -> str:
        return f"{self.generation}/{self.checkpoint}/{self.batch}"

    @classmethod
    def parse(cls, text: str | None) -> "CommitMetadata | None":
        """The stamp in commit metadata; None where another tool committed without one."""
        parts = (text or "").rstrip("\0").split("/")  # librdkafka sends its string's closing zero along
        try:
            return cls(int(parts[0]), parts[1], int(parts[2])) if len(parts) == 3 else None
        except ValueError:
            return None

    @classmethod
    def newest(cls, committed: Iterable[TopicPartition]) -> "CommitMetadata | None":
        """Who committed last, of what a group has committed; None if no job did."""
        stamps = [stamp for t in committed if (stamp := cls.parse(t.metadata)) is not None]
        return max(stamps, key=lambda stamp: (stamp.generation, stamp.batch), default=None)


@dataclass(frozen=True, slots=True)
class Positions:
    """The next offset of every input partition, and the newest stamp among them.

    Of the partitions `missing` nobody has committed any.
    """

    offsets: Mapping[int, int]
    stamp: CommitMetadata | None
    missing: frozenset[int] = frozenset()


class Group:
    """A group's positions on one topic. It never joins the group; every method but `ends` raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, group: str, topic: str, partitions: int) -> None:
        self._committed = Committed(kafka, group)
        self.topic, self._partitions = topic, partitions

    @property
    def metadata(self) -> object:
        """What a transactional producer needs to commit for this group."""
        return self._committed.metadata

    def read(self, among: Collection[int] | None = None) -> Positions:
        """The committed positions; a partition without one starts at its earliest offset.

        Of all partitions, or of those `among` them. Waits for an open transaction of the group on these to end.
        """
        return self._positions(self._committed.read(self._places(among)))

    def glance(self) -> Positions:
        """The same without waiting: what an open transaction would move stands where it stood."""
        return self._positions(self._committed.glance(self._places()))

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The earliest offset and the end of each partition."""
        return {place.partition: self._committed.bounds(place) for place in self._places()}

    def ends(self, partitions: Collection[int]) -> dict[Partition, int] | None:
        """The ends of some partitions as they are now; None while the broker does not answer at once."""
        return self._committed.ends([(self.topic, p) for p in partitions])

    def close(self) -> None:
        """Gives the connections back."""
        self._committed.close()

    def _places(self, among: Collection[int] | None = None) -> list[TopicPartition]:
        return [TopicPartition(self.topic, p) for p in (range(self._partitions) if among is None else among)]

    def _positions(self, committed: Sequence[TopicPartition]) -> Positions:
        offsets = {t.partition: t.offset if t.offset >= 0 else self._committed.bounds(t)[0] for t in committed}
        return Positions(
            offsets, CommitMetadata.newest(committed), frozenset(t.partition for t in committed if t.offset < 0)
        )


def refuse_if_stale(positions: Positions, generation: int, app: str) -> None:
    """Raises StaleGeneration if a newer generation has committed."""
    if positions.stamp is not None and positions.stamp.generation > generation:
        raise StaleGeneration(
            f"starting {app} generation {generation}: generation {positions.stamp.generation} has taken over",
            hint="a newer start order runs this detector; nothing to do unless that was a mistake",
        )
