"""How far a query in Real-Time Mode has read, while its batch lasts: Spark itself tells that minutes later, at its end.

Its tasks read by consumers of Kafka's Java client, which ask the broker for more at least twice a second while a task
waits for records, and not at all while it hangs. By JMX each tells how often it has asked, and how far from the end of
a partition it was left. So a position moves where either has changed since the last look; else the end moves away. Lag
is told too low by what has come since a reader last asked, while it works through what it was given.

That is so where tasks run in the driver's JVM, as they always do in this mode: it is refused with a cluster.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lozenge.contracts.record import Partition
from lozenge.process.periodic import every

LOOK_SECONDS = 2.0
"""How often to look: each time takes two calls to the JVM for each partition, of half a millisecond."""
_CLIENT = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id={}"


def group_of(app: str) -> str:
    """How the groups of a query in Real-Time Mode begin: by that its readers are known from others of the process."""
    return f"{app}-live"


class Seen(NamedTuple):
    """What a look has shown: offsets still to read, and offsets read since the last look."""

    lag: int
    read: int


class _Reader(NamedTuple):
    """A client that reads a partition: its name, and those under which it tells of itself and of the partition."""

    client: str
    itself: Any
    partition: Any


class LiveLag:
    """Where a query of `app` stands that begins at `starts`; made before the query is. One thread looks."""

    def __init__(self, spark: SparkSession, app: str, starts: Mapping[Partition, int]) -> None:
        self._prefix = f"consumer-{group_of(app)}-"
        self._positions = dict(starts)
        self._by_tag = {_tag(partition): partition for partition in starts}
        jvm = cast(Any, spark._jvm)
        self._beans = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        self._name = jvm.javax.management.ObjectName
        self._readers: list[tuple[Partition, _Reader]] = []
        self._told: dict[str, tuple[float, int]] = {}  # how often it has asked, and what was left, by client
        self._earlier = frozenset(reader.client for _, reader in self._found())
        self._ahead = 0  # offsets that were shown as read, of batches that have not ended
        self._lock = threading.Lock()

    def look(self, ends: Mapping[Partition, int]) -> Seen:
        """How the query stands to the `ends` of its partitions, which were asked for just before."""
        left, read = self._left(), 0
        for partition, lag in left.items():
            position = max(self._positions[partition], ends[partition] - lag)
            read += position - self._positions[partition]
            self._positions[partition] = position
        behind = (max(0, ends[partition] - position) for partition, position in self._positions.items())
        with self._lock:
            self._ahead += read
        return Seen(sum(behind), read)

    def unseen(self, offsets: int) -> int:
        """How many of the `offsets` of a batch that has ended no look has shown as read; from any thread."""
        with self._lock:
            seen = min(offsets, self._ahead)
            self._ahead -= seen  # the next batch may be under way
            return offsets - seen

    def _left(self) -> dict[Partition, int]:
        """How far from the end each partition was left whose reader has gone on since the last look."""
        left = dict[Partition, int]()
        try:
            if len(self._readers) < len(self._positions):
                self._readers = [(p, r) for p, r in self._found() if r.client not in self._earlier]
            for partition, reader in self._readers:
                asked = float(self._beans.getAttribute(reader.itself, "fetch-total"))
                lag = int(self._beans.getAttribute(reader.partition, "records-lag"))
                if (asked, lag) != self._told.get(reader.client):
                    self._told[reader.client] = asked, lag
                    left[partition] = lag
        except Py4JError:  # a reader has gone, or the JVM with all of them
            pass
        if len(left) < len(self._positions):  # others may read now
            self._readers = []
        return left

    def _found(self) -> Iterator[tuple[Partition, _Reader]]:
        for name in self._beans.queryNames(self._name(_CLIENT.format("*,topic=*,partition=*")), None):
            partition = self._by_tag.get(
                _tag((str(name.getKeyProperty("topic")), int(name.getKeyProperty("partition"))))
            )
            client = str(name.getKeyProperty("client-id"))
            if partition is not None and client.startswith(self._prefix):
                yield partition, _Reader(client, self._name(_CLIENT.format(client)), name)


def looking(
    live: LiveLag, ends: Callable[[], Mapping[Partition, int] | None], tell: Callable[[Seen], None]
) -> AbstractContextManager[None]:
    """Tells every `LOOK_SECONDS` how `live` stands to the `ends`, if these are known, until the block ends.

    In a thread of its own: a look takes some milliseconds, which nobody who tells alerts should wait for.
    """

    def look() -> None:
        if (now := ends()) is not None:
            tell(live.look(now))

    return every(LOOK_SECONDS, look, "looking")


def _tag(partition: Partition) -> Partition:
    """A partition as the client calls it."""
    topic, number = partition
    return topic.replace(".", "_"), number
