"""How far a query in Real-Time Mode has read while its batch lasts; Spark reports that at its end, minutes later.

Its tasks read by consumers of Kafka's Java client. These fetch at least twice a second while a task waits for records,
and not at all while it hangs. By JMX each consumer shows how often it has fetched, and its lag at a partition. A
position moves where either has changed since the last poll; else the topic's end moves away from it. While a reader
works through what it has fetched, its lag lacks the records that came since that fetch.

This holds where tasks run in the driver's JVM, as they always do in this mode: a cluster is refused.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lozenge.contracts.record import Partition
from lozenge.process.periodic import every
from lozenge.spark.internals import driver_jvm

LAG_POLL_SECONDS = 2.0
"""How often to poll: each poll makes two calls to the JVM for each partition, of half a millisecond."""
_CLIENT = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id={}"


def reader_group(app: str) -> str:
    """The prefix of the groups of a query in Real-Time Mode: by it its readers differ from others of the process."""
    return f"{app}-live"


class LiveProgress(NamedTuple):
    """What a poll has found: offsets still to read, and offsets read since the last poll."""

    lag: int
    read: int


class _Reader(NamedTuple):
    """A consumer that reads a partition: its client.id, and the beans of its fetches and of the partition."""

    client: str
    fetches: Any
    partition: Any


class LiveLag:
    """The positions of a query of `app` that begins at `starts`; made before the query is. One thread polls."""

    def __init__(self, spark: SparkSession, app: str, starts: Mapping[Partition, int]) -> None:
        self._prefix = f"consumer-{reader_group(app)}-"
        self._positions = dict(starts)
        self._by_tag = {_tag(partition): partition for partition in starts}
        jvm = driver_jvm.java(spark)
        self._beans = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        self._name = jvm.javax.management.ObjectName
        self._readers: list[tuple[Partition, _Reader]] = []
        self._last: dict[str, tuple[float, int]] = {}  # number of fetches, and lag, by client.id
        self._earlier = frozenset(reader.client for _, reader in self._found())
        self._ahead = 0  # offsets that a poll has found as read, of batches that have not ended
        self._lock = threading.Lock()

    def poll(self, ends: Mapping[Partition, int]) -> LiveProgress:
        """The query's progress towards the `ends` of its partitions, which were read just before."""
        lags, read = self._lags(), 0
        for partition, lag in lags.items():
            position = max(self._positions[partition], ends[partition] - lag)
            read += position - self._positions[partition]
            self._positions[partition] = position
        remaining = (max(0, ends[partition] - position) for partition, position in self._positions.items())
        with self._lock:
            self._ahead += read
        return LiveProgress(sum(remaining), read)

    def not_yet_counted(self, offsets: int) -> int:
        """How many of the `offsets` of a batch that has ended no poll has found as read; from any thread."""
        with self._lock:
            counted = min(offsets, self._ahead)
            self._ahead -= counted  # the next batch may be under way
            return offsets - counted

    def _lags(self) -> dict[Partition, int]:
        """The lag of each partition whose reader has fetched since the last poll."""
        lags = dict[Partition, int]()
        try:
            if len(self._readers) < len(self._positions):
                self._readers = [(p, r) for p, r in self._found() if r.client not in self._earlier]
            for partition, reader in self._readers:
                fetches = float(self._beans.getAttribute(reader.fetches, "fetch-total"))
                lag = int(self._beans.getAttribute(reader.partition, "records-lag"))
                if (fetches, lag) != self._last.get(reader.client):
                    self._last[reader.client] = fetches, lag
                    lags[partition] = lag
        except Py4JError:  # a reader has gone, or the JVM with all of them
            pass
        if len(lags) < len(self._positions):  # others may read now
            self._readers = []
        return lags

    def _found(self) -> Iterator[tuple[Partition, _Reader]]:
        for name in self._beans.queryNames(self._name(_CLIENT.format("*,topic=*,partition=*")), None):
            partition = self._by_tag.get(
                _tag((str(name.getKeyProperty("topic")), int(name.getKeyProperty("partition"))))
            )
            client = str(name.getKeyProperty("client-id"))
            if partition is not None and client.startswith(self._prefix):
                yield partition, _Reader(client, self._name(_CLIENT.format(client)), name)


def polling(
    live: LiveLag, ends: Callable[[], Mapping[Partition, int] | None], report: Callable[[LiveProgress], None]
) -> AbstractContextManager[None]:
    """Reports every `LAG_POLL_SECONDS` the progress of `live` towards `ends`, while these are known, in the block.

    In a thread of its own: in the thread that publishes alerts a poll took 10 to 20 ms.
    """

    def poll() -> None:
        if (now := ends()) is not None:
            report(live.poll(now))

    return every(LAG_POLL_SECONDS, poll, "polling the lag")


def _tag(partition: Partition) -> Partition:
    """A partition as the client's metrics name it."""
    topic, number = partition
    return topic.replace(".", "_"), number
