"""Which tables of an archive this process keeps, among several processes of one sink.

The partitions of the sink's dead-letter topic are the shares, which Kafka's group protocol assigns. A table belongs to
the process that has its share. So one process writes a table at a time: a process that was away for too long finds
that the writer of the share is fenced, and that the table is at another position.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from zlib import crc32

from lozenge.kafka.group_membership import Membership
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.writers import TransactionalWriter


def share_of(topic: str, shares: int) -> int:
    """The share that the table of a topic is in, the same in every process."""
    return crc32(topic.encode()) % shares


class TableShares:
    """The shares of one process; used by one thread."""

    def __init__(self, kafka: KafkaSettings, app: str) -> None:
        """Raises BrokerUnavailable. The dead-letter topic of `app` exists."""
        self._kafka, self._app = kafka, app
        topic = kafka.topics.dead_letters(app)
        self._count = partitions(kafka)[topic]
        self._membership = Membership(kafka, f"{app}-instances", [topic])
        self._writers: dict[int, TransactionalWriter] = {}

    @contextmanager
    def joined(self) -> Iterator[None]:
        """A member of the group within the block; the others get its shares at once after it."""
        self._membership.join()
        try:
            yield
        finally:
            self._membership.leave()

    def settle(self) -> frozenset[int]:
        """The shares to work on from now on, with their writers fenced; nothing is worked on during the call.

        Raises BrokerUnavailable.
        """
        held = frozenset(share for _, share in self._membership.settle())
        self._writers = {share: writer for share, writer in self._writers.items() if share in held}
        for share in sorted(held - self._writers.keys()):
            writer = self._writers[share] = TransactionalWriter(self._kafka, f"{self._app}-{share}")
            writer.fence()
        return held

    @property
    def changed(self) -> bool:
        """Whether other shares are to be worked on than those of the last `settle`."""
        return {share for _, share in self._membership.partitions} != self._writers.keys()

    def own(self, topics: Iterable[str]) -> list[str]:
        """Those of these topics whose tables are in the shares of this process."""
        return [topic for topic in topics if share_of(topic, self._count) in self._writers]

    def writer(self, topic: str) -> TransactionalWriter:
        """What writes the dead letters of a topic of its own, and moves the group."""
        return self._writers[share_of(topic, self._count)]
