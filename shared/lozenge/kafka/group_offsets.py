"""What a consumer group has committed, read by one who never joins it and so never makes it rebalance."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.contracts.record import Partition
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings

T = TypeVar("T")
CALL_SECONDS = 10.0
GLANCE_SECONDS = 1.0
DEADLINE_SECONDS, TRIES = 60.0, 3
"""How long, and how often at least, it asks: a process that stood still has waited for nobody."""


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
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = self._ask(self._waiting, asked)
            missing = [each for each in found if each.offset < 0]
            if not missing or all(each.offset < 0 for each in self.glance(missing)):
                return found
            # while a transaction becomes valid, it may hide what was committed before it: nothing is missing
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"reading the offsets of {self._group}: a transaction does not come to its end",
                    hint=f"check the broker at {self._bootstrap}; a new start tries again",
                )
            time.sleep(0.05)

    def glance(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        """The same without waiting: what an open transaction would move stands where it stood."""
        return self._ask(self._glancing, asked)

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The earliest offset of a partition and its end, which lies before what is not committed yet."""
        return self._patiently(
            f"looking what {partition.topic} has",
            lambda: self._waiting.get_watermark_offsets(partition, timeout=CALL_SECONDS),
        )

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int] | None:
        """The end of each of `partitions`, as it is now; None while the broker does not answer at once."""
        try:
            return {p: self._waiting.get_watermark_offsets(TopicPartition(*p), GLANCE_SECONDS)[1] for p in partitions}
        except KafkaException:
            return None

    def close(self) -> None:
        """Gives the connections back."""
        self._waiting.close()
        self._glancing.close()

    def _ask(self, consumer: Consumer, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        def ask() -> list[TopicPartition]:
            found: list[TopicPartition] = consumer.committed(list(asked), timeout=CALL_SECONDS)
            for each in found:
                if each.error is not None:  # not to be taken for an offset that nobody has committed
                    raise KafkaException(each.error)
            return found

        return self._patiently(f"reading the offsets of {self._group}", ask)

    def _patiently(self, doing: str, call: Callable[[], T]) -> T:
        """`call`, repeated while the broker is away or the group's coordinator is moving or loading."""
        deadline, tried = time.monotonic() + DEADLINE_SECONDS, 0
        while True:
            try:
                return call()
            except KafkaException as error:
                tried += 1
                if time.monotonic() > deadline and tried >= TRIES:
                    raise BrokerUnavailable(
                        f"{doing}: {error.args[0].str()}", hint=f"check that the broker at {self._bootstrap} runs"
                    ) from error
                time.sleep(0.2)
