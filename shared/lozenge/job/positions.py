"""The consumer group as the one truth about how far a job has come.

Each committed offset carries `generation/checkpoint-id/batch-id`: who committed, and which batch of
which checkpoint that was. Offsets alone would not do: a batch without data, in which windows close,
has the same end offsets as the one before it.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.errors import BrokerUnavailable, StaleGeneration
from lozenge.kafka import KafkaSettings

CALL_SECONDS = 10.0
DEADLINE_SECONDS = 60.0
NO_CHECKPOINT = "-"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who committed an offset: its generation, the checkpoint's id and the batch."""

    generation: int
    checkpoint: str = NO_CHECKPOINT
    batch: int = -1

    def __str__(self) -> str:
        return f"{self.generation}/{self.checkpoint}/{self.batch}"

    @classmethod
    def parse(cls, text: str | None) -> "Stamp | None":
        """The stamp in commit metadata; None where another tool committed without one."""
        parts = (text or "").rstrip("\0").split("/")  # librdkafka sends its string's closing zero along
        try:
            return cls(int(parts[0]), parts[1], int(parts[2])) if len(parts) == 3 else None
        except ValueError:
            return None

    @classmethod
    def newest(cls, committed: Iterable[TopicPartition]) -> "Stamp | None":
        """Who committed last, of what a group has committed; None if no job did."""
        stamps = [stamp for t in committed if (stamp := cls.parse(t.metadata)) is not None]
        return max(stamps, key=lambda stamp: (stamp.generation, stamp.batch), default=None)


@dataclass(frozen=True, slots=True)
class Positions:
    """The next offset of every input partition, and the newest stamp among them.

    Of the partitions `missing` nobody has committed any.
    """

    offsets: Mapping[int, int]
    stamp: Stamp | None
    missing: frozenset[int] = frozenset()


class Group:
    """Reads a group's positions on one topic. It never joins the group, so it never rebalances."""

    def __init__(self, kafka: KafkaSettings, group: str, topic: str, partitions: int) -> None:
        self._consumer, self._glancing = (
            Consumer(kafka.client(group_id=group, enable_auto_commit=False, isolation_level=level))
            for level in ("read_committed", "read_uncommitted")
        )
        self.topic, self._partitions, self._bootstrap = topic, partitions, kafka.bootstrap

    @property
    def metadata(self) -> object:
        """What a transactional producer needs to commit for this group."""
        return self._consumer.consumer_group_metadata()

    def read(self, among: Collection[int] | None = None) -> Positions:
        """The committed positions; a partition without one starts at its earliest offset.

        Of all partitions, or of those `among` them. Waits for an open transaction of the group on these to end.
        Raises BrokerUnavailable.
        """
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            positions = self._ask(self._consumer, among)
            if not positions.missing - self.glance().missing:
                return positions
            # while a commit of a transaction becomes valid, it may hide the one before it: nothing is missing
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"reading the offsets of {self.topic}: a transaction does not come to its end",
                    hint=f"check the broker at {self._bootstrap}; the job is started again",
                )
            time.sleep(0.05)

    def glance(self) -> Positions:
        """The same without waiting: what an open transaction would move stands where it stood."""
        return self._ask(self._glancing)

    def _ask(self, consumer: Consumer, among: Collection[int] | None = None) -> Positions:
        asked = [TopicPartition(self.topic, p) for p in (range(self._partitions) if among is None else among)]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                committed = consumer.committed(asked, timeout=CALL_SECONDS)
                for each in committed:
                    if each.error is not None:  # not to be taken for an offset that nobody has committed
                        raise KafkaException(each.error)
                missing = frozenset(t.partition for t in committed if t.offset < 0)
                offsets = {t.partition: t.offset if t.offset >= 0 else self._bounds(t)[0] for t in committed}
                return Positions(offsets, Stamp.newest(committed), missing)
            except KafkaException as error:  # the group's coordinator may just be moving or loading
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(
                        f"reading the offsets of {self.topic}: {error.args[0].str()}",
                        hint=f"check that the broker at {self._bootstrap} runs",
                    ) from error
                time.sleep(0.2)

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The earliest offset and the end of each partition; raises BrokerUnavailable."""
        try:
            return {p: self._bounds(TopicPartition(self.topic, p)) for p in range(self._partitions)}
        except KafkaException as error:
            raise BrokerUnavailable(
                f"looking what {self.topic} has: {error.args[0].str()}",
                hint=f"check that the broker at {self._bootstrap} runs",
            ) from error

    def _bounds(self, partition: TopicPartition) -> tuple[int, int]:
        found: tuple[int, int] = self._consumer.get_watermark_offsets(partition, timeout=CALL_SECONDS)
        return found

    def close(self) -> None:
        """Gives the connections back."""
        self._consumer.close()
        self._glancing.close()


def refuse_if_stale(positions: Positions, generation: int, app: str) -> None:
    """Raises StaleGeneration if a newer generation has committed."""
    if positions.stamp is not None and positions.stamp.generation > generation:
        raise StaleGeneration(
            f"starting {app} generation {generation}: generation {positions.stamp.generation} has taken over",
            hint="a newer start order runs this detector; nothing to do unless that was a mistake",
        )
