"""Upstream's position: the committed offsets of its consumer group."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from confluent_kafka import TopicPartition

from lozenge.contracts.record import Partition
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.stream_releases import ReleaseId
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.normalise.output_records import StreamOutput
from lozenge_upstream.streaming.coverage import RawCoverage
from lozenge_upstream.streaming.start_offsets import CommittedRaw


class Position:
    """Reads the committed offsets of `group`, which it never joins, for a query of `release`.

    Records ahead of these offsets may have been written already, since `written_since`; None means that none were.
    `written_until` is up to which offset of each partition, as far as a recovery read has found it. Nobody reads the
    topics `waiting`; their records are part of the lag.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        group: str,
        target: StreamOutput,
        release: ReleaseId,
        waiting: Collection[str] = (),
    ) -> None:
        self._waiting, self.waiting_lag = waiting, 0
        self._release, self._coverage = release, RawCoverage(kafka, target, release)
        self._committed = Committed(kafka, group)
        self._positions: dict[Partition, int] = {}
        self.written_since: datetime | None = None
        self.written_until: Mapping[Partition, int] = {}

    def read(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """The offset at which each partition of each topic resumes: its earliest record if nothing was committed.

        None for the topics that wait. The starts are recorded in the coverage of upstream.

        Waits for an open transaction of the group to end. Raises BrokerUnavailable, or OffsetsLost where raw records
        to read next are gone.
        """
        wanted = _each(partitions)
        found: dict[str, dict[int, CommittedRaw]] = {}
        for each in self._committed.read(wanted):
            low, end = self._committed.bounds(each)
            raw = CommittedRaw(each.offset, CommitMetadata.decode(each.metadata), low, end)
            found.setdefault(each.topic, {})[each.partition] = raw
        starts = self._coverage.begin({t: of for t, of in found.items() if t not in self._waiting})
        self._positions = {
            (topic, number): starts[topic][number] if topic in starts else max(raw.offset, raw.earliest)
            for topic, of in found.items()
            for number, raw in of.items()
        }
        metadata = [raw.metadata for of in found.values() for raw in of.values()]
        self.written_since = min((m.ahead_since for m in metadata if m and m.ahead_since), default=None)
        self.written_until = {}
        offsets: Offsets = {topic: {} for topic in partitions if topic not in self._waiting}
        for (topic, number), at in self._positions.items():
            if topic in offsets:
                offsets[topic][str(number)] = at
        return offsets

    def ahead_by_others(self, partitions: Mapping[str, Iterable[int]]) -> dict[ReleaseId, dict[str, list[int]]]:
        """Those of `partitions` of which another release has written ahead of the group's offsets, by that release.

        Raises BrokerUnavailable.
        """
        committed = [(each, CommitMetadata.decode(each.metadata)) for each in self._committed.read(_each(partitions))]
        ahead = [each for each, metadata in committed if metadata is not None and metadata.ahead_since is not None]
        last = self._coverage.last_releases() if ahead else {}
        found: dict[ReleaseId, dict[str, list[int]]] = {}
        for each in ahead:
            release = last.get((each.topic, each.partition), self._release)
            if release != self._release:
                found.setdefault(release, {}).setdefault(each.topic, []).append(each.partition)
        return found

    @property
    def is_even(self) -> bool:
        """Whether the group has passed all that a recovery read has found: nothing is written ahead of its offsets."""
        return all(at >= self.written_until.get(partition, 0) for partition, at in self._positions.items())

    def distance_to(self, offsets: Offsets) -> int:
        """The number of offsets between the group's position and `offsets`."""
        return sum(at - self._positions[t, int(number)] for t, ends in offsets.items() for number, at in ends.items())

    def advance(self, offsets: Offsets) -> None:
        """Takes `offsets` for the group's position, because they have been committed."""
        self._positions |= {(topic, int(number)): at for topic, ends in offsets.items() for number, at in ends.items()}

    def metadata_at(self, offsets: Offsets) -> CommitMetadata:
        """The metadata for a commit of `offsets` by a transaction: whether anything was written ahead of them.

        The mark stays until the group has passed every record that was written ahead: a start before that needs a
        recovery read as well.
        """
        passed = all(
            at >= self.written_until.get((topic, int(number)), 0)
            for topic, ends in offsets.items()
            for number, at in ends.items()
        )
        return CommitMetadata() if passed else CommitMetadata(output_ahead=True, ahead_since=self.written_since)

    @property
    def offsets(self) -> Mapping[Partition, int]:
        """The group's position, by topic and partition."""
        return self._positions

    def ends(self) -> dict[Partition, int] | None:
        """The end offsets of its partitions; None while the broker does not answer at once."""
        return self._committed.ends(self._positions)

    def lag(self) -> int:
        """The consumer lag: raw records after the committed offsets, also those of open transactions, or waiting.

        Raises BrokerUnavailable.
        """
        read = waiting = 0
        for (topic, number), position in list(self._positions.items()):
            behind = max(0, self._committed.written_end(TopicPartition(topic, number)) - position)
            if topic in self._waiting:
                waiting += behind
            else:
                read += behind
        self.waiting_lag = waiting
        return read + waiting

    def close(self) -> None:
        """Closes the connection."""
        self._committed.close()


def _each(partitions: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
