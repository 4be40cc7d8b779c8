"""Upstream's position: the committed offsets of its consumer group."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from confluent_kafka import TopicPartition

from lozenge.contracts.record import Partition
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets


class Position:
    """Reads the committed offsets of `group`, which it never joins.

    Records ahead of these offsets may have been written already, since `written_since`; None means that none were.
    `written_until` is up to which offset of each partition, as far as a recovery read has found it.
    """

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._committed = Committed(kafka, group)
        self._positions: dict[Partition, int] = {}
        self.written_since: datetime | None = None
        self.written_until: Mapping[Partition, int] = {}

    def read(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """The offset at which each partition of each topic resumes: its earliest record if nothing was committed.

        Waits for an open transaction of the group to end. Raises BrokerUnavailable.
        """
        wanted = [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
        found = self._committed.read(wanted)
        self._positions = {
            (at.topic, at.partition): at.offset if at.offset >= 0 else self._committed.bounds(at)[0] for at in found
        }
        metadata = [CommitMetadata.decode(at.metadata) for at in found]
        self.written_since = min((m.ahead_since for m in metadata if m and m.ahead_since), default=None)
        self.written_until = {}
        offsets: Offsets = {topic: {} for topic in partitions}
        for (topic, number), at in self._positions.items():
            offsets[topic][str(number)] = at
        return offsets

    def distance_to(self, offsets: Offsets) -> int:
        """The number of offsets between the group's position and `offsets`."""
        return sum(at - self._positions[t, int(number)] for t, ends in offsets.items() for number, at in ends.items())

    def advance(self, offsets: Offsets) -> None:
        """Takes `offsets` for the group's position, because they have been committed."""
        self._positions |= {(topic, int(number)): at for topic, ends in offsets.items() for number, at in ends.items()}

    def metadata_at(self, offsets: Offsets) -> CommitMetadata | None:
        """The metadata for a commit of `offsets` by a transaction; None if nothing was written ahead of them.

        The mark stays until the group has passed every record that was written ahead: a start before that has to read
        back as well.
        """
        passed = all(
            at >= self.written_until.get((topic, int(number)), 0)
            for topic, ends in offsets.items()
            for number, at in ends.items()
        )
        return None if passed else CommitMetadata(output_ahead=True, ahead_since=self.written_since)

    @property
    def offsets(self) -> Mapping[Partition, int]:
        """The group's position, by topic and partition."""
        return self._positions

    def ends(self) -> dict[Partition, int] | None:
        """The end offsets of its partitions; None while the broker does not answer at once."""
        return self._committed.ends(self._positions)

    def lag(self) -> int:
        """The consumer lag: raw records after the committed offsets; raises BrokerUnavailable."""
        total = 0
        for (topic, number), position in list(self._positions.items()):
            low, high = self._committed.bounds(TopicPartition(topic, number))
            total += max(0, high - max(low, position))
        return total

    def close(self) -> None:
        """Closes the connection."""
        self._committed.close()
