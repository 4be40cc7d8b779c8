"""Committed offsets of a consumer group, read without joining the group, so that nothing rebalances.

The group is the one truth about how far a job or upstream has come.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lozenge.contracts.record import Partition
from lozenge.errors import BrokerUnavailable, StaleGeneration
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.retries import retry
from lozenge.protocol.commit_metadata import CommitMetadata

T = TypeVar("T")
CALL_SECONDS = 10.0
GLANCE_SECONDS = 1.0
DEADLINE_SECONDS, ATTEMPTS = 60.0, 3
"""How long, and how often at least, a call is tried."""


class _Hidden(Exception):
    """A transaction that is becoming valid hides offsets that were committed before it."""


class Committed:
    """The offsets of `group` and their metadata. One below 0 was never committed, or has expired.

    Every method but `ends` raises BrokerUnavailable.
    """

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._group, self._bootstrap = group, kafka.bootstrap
        self._waiting, self._glancing = (
            Consumer(kafka.client(group_id=group, enable_auto_commit=False, isolation_level=level))
            for level in ("read_committed", "read_uncommitted")
        )

    @property
    def metadata(self) -> object:
        """What a transactional producer needs to commit for this group."""
        return self._waiting.consumer_group_metadata()

    def read(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Of the partitions `asked`; waits for an open transaction of the group on these to end."""

        def read() -> list[TopicPartition]:
            found = self._ask(self._waiting, asked)
            missing = [each for each in found if each.offset < 0]
            if missing and any(each.offset >= 0 for each in self.glance(missing)):
                raise _Hidden
            return found

        try:
            return retry(read, lambda error: isinstance(error, _Hidden), seconds=DEADLINE_SECONDS, pause=0.05)
        except _Hidden as error:
            raise BrokerUnavailable(
                f"reading the offsets of {self._group}: a transaction does not come to its end",
                hint=f"check the broker at {self._bootstrap}; a new start tries again",
            ) from error

    def glance(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        """The same without waiting: an open transaction has moved nothing yet."""
        return self._ask(self._glancing, asked)

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The earliest offset of a partition, and its end; records of open transactions come after that end."""
        return self._retry(
            f"reading the bounds of {partition.topic}",
            lambda: self._waiting.get_watermark_offsets(partition, timeout=CALL_SECONDS),
        )

    def written_end(self, partition: TopicPartition) -> int:
        """The end of a partition with the records of open transactions."""
        return self._retry(
            f"reading the bounds of {partition.topic}",
            lambda: self._glancing.get_watermark_offsets(partition, timeout=CALL_SECONDS)[1],
        )

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int] | None:
        """The end of each of `partitions`, as it is now; None while the broker does not answer at once."""
        try:
            return {p: self._waiting.get_watermark_offsets(TopicPartition(*p), GLANCE_SECONDS)[1] for p in partitions}
        except KafkaException:
            return None

    def close(self) -> None:
        """Closes the connections."""
        self._waiting.close()
        self._glancing.close()

    def _ask(self, consumer: Consumer, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        def ask() -> list[TopicPartition]:
            found: list[TopicPartition] = consumer.committed(list(asked), timeout=CALL_SECONDS)
            for each in found:
                if each.error is not None:  # not to be taken for an offset that nobody has committed
                    raise KafkaException(each.error)
            return found

        return self._retry(f"reading the offsets of {self._group}", ask)

    def _retry(self, doing: str, call: Callable[[], T]) -> T:
        """`call`, repeated while the broker is away or the group's coordinator is moving or loading."""
        try:
            return retry(
                call,
                lambda error: isinstance(error, KafkaException),
                seconds=DEADLINE_SECONDS,
                pause=0.2,
                attempts=ATTEMPTS,
            )
        except KafkaException as error:
            raise BrokerUnavailable(
                f"{doing}: {error.args[0].str()}", hint=f"check that the broker at {self._bootstrap} runs"
            ) from error


@dataclass(frozen=True, slots=True)
class Positions:
    """The next offset of every input partition, and the metadata of the last commit among them.

    Nobody has committed an offset of the partitions `missing`, and another tool has committed those of `moved`.
    """

    offsets: Mapping[int, int]
    metadata: CommitMetadata | None
    missing: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()


class ConsumerGroup:
    """Positions of a group on one topic. It never joins the group; every method but `ends` raises BrokerUnavailable."""

    def __init__(
        self, kafka: KafkaSettings, group: str, topic: str, partitions: int, committed: Committed | None = None
    ) -> None:
        """A group with many topics has one pair of connections, `committed`, for all of them."""
        self._committed = committed or Committed(kafka, group)
        self.topic, self._partitions = topic, partitions

    @property
    def metadata(self) -> object:
        """What a transactional producer needs to commit for this group."""
        return self._committed.metadata

    def read(self, among: Collection[int] | None = None) -> Positions:
        """The committed positions; a partition without one starts at its earliest offset.

        Of all partitions, or of those `among` them. Waits for an open transaction of the group on these to end.
        """
        return self._positions(self._committed.read(self._asked(among)))

    def glance(self) -> Positions:
        """The same without waiting: an open transaction has moved nothing yet."""
        return self._positions(self._committed.glance(self._asked()))

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The earliest offset and the end of each partition."""
        return {asked.partition: self._committed.bounds(asked) for asked in self._asked()}

    def ends(self, partitions: Collection[int]) -> dict[Partition, int] | None:
        """The ends of some partitions as they are now; None while the broker does not answer at once."""
        return self._committed.ends([(self.topic, p) for p in partitions])

    def close(self) -> None:
        """Closes the connections."""
        self._committed.close()

    def _asked(self, among: Collection[int] | None = None) -> list[TopicPartition]:
        return [TopicPartition(self.topic, p) for p in (range(self._partitions) if among is None else among)]

    def _positions(self, committed: Sequence[TopicPartition]) -> Positions:
        offsets = {t.partition: t.offset if t.offset >= 0 else self._committed.bounds(t)[0] for t in committed}
        missing = frozenset(t.partition for t in committed if t.offset < 0)
        foreign = frozenset(t.partition for t in committed if CommitMetadata.decode(t.metadata) is None)
        return Positions(offsets, CommitMetadata.newest(t.metadata for t in committed), missing, foreign - missing)


def refuse_if_stale(positions: Positions, generation: int, app: str) -> None:
    """Raises StaleGeneration if a newer generation has committed."""
    if positions.metadata is not None and positions.metadata.generation > generation:
        raise StaleGeneration(
            f"starting {app} generation {generation}: generation {positions.metadata.generation} has replaced it",
            hint="a newer job spec runs this detector; nothing to do unless that was a mistake",
        )


def committed(kafka: KafkaSettings, group: str) -> list[TopicPartition]:
    """All that `group` has committed on any topic, with its metadata; raises BrokerUnavailable."""
    admin = AdminClient(kafka.client())  # it has to live until the answer is there
    group_id = kafka.topics.prefixed(group)
    try:
        wanted = [ConsumerGroupTopicPartitions(group_id)]
        asked = admin.list_consumer_group_offsets(wanted, request_timeout=CALL_SECONDS)
        return [p for p in asked[group_id].result().topic_partitions or () if p.offset >= 0 and p.error is None]
    except KafkaException as error:
        raise BrokerUnavailable(
            f"reading the offsets of {group}: {error.args[0].str()}",
            hint=f"check the broker at {kafka.bootstrap}",
        ) from error


def newest_commit_metadata(kafka: KafkaSettings, group: str) -> CommitMetadata | None:
    """The metadata of the last commit of `group`; None if no job ever committed. Raises BrokerUnavailable."""
    return CommitMetadata.newest(partition.metadata for partition in committed(kafka, group))
