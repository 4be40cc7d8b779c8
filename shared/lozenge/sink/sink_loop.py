"""The loop of an archive: it finds topics, commits what is due of each, and keeps their tables in order.

Several processes share the tables. One that is given a table begins where the table ends.
"""

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lozenge.archive.archived_topics import ArchivedTopic, archived_topics
from lozenge.archive.delta_table import ArchiveTable, ArchiveUnwritable, Ends
from lozenge.errors import ConfigError, OffsetsLost, SchemaError
from lozenge.kafka.topic_admin import partitions
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.process.logging import logger
from lozenge.process.shutdown import Stop
from lozenge.sink.commit_plan import CommitLimits
from lozenge.sink.maintenance import Maintenance
from lozenge.sink.table_shares import TableShares
from lozenge.sink.topic_sink import ArchiveReading, Committing, TopicSink
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge.streams.definition import StreamDefinition

DISCOVER_SECONDS = 30.0
UNWRITABLE_SECONDS = 10.0
"""After which a topic is tried again whose table could not be written."""
LONGEST_PAUSE = 5.0
"""Seconds between two looks at the ends of the topics, at most."""
WITHOUT_TABLES = 0.2
"""Seconds between two looks at what is assigned, while that is nothing."""


class SinkLoop:
    """Archives the topics of one sink, as far as they are in the `shares` of this process; used by one thread."""

    def __init__(
        self,
        sink: ArchiveSink,
        streams: Sequence[StreamDefinition],
        archive: Path,
        reading: ArchiveReading,
        shares: TableShares,
        metrics: SinkMetrics,
    ) -> None:
        self._sink, self._streams, self._archive = sink, streams, archive
        self._reading, self._shares, self._metrics = reading, shares, metrics
        self._limits = CommitLimits(sink.commit_every.total_seconds(), sink.commit_mb)
        self._topics: dict[str, tuple[TopicSink, Maintenance]] = {}
        self._committed_at: dict[str, float] = {}
        self._refused: set[str] = set()
        self._unwritable: dict[str, float] = {}

    def run(self, stop: Stop) -> None:
        """Archives until `stop` is requested, and then commits what the topics have by then.

        A table that cannot be written, as on a full disk, holds up no other, and is tried again until it can. Raises
        Fenced if another process archives these topics, BrokerUnavailable, and what Spark raises.
        """
        with self._shares.joined():
            while not stop.wait(0.0):
                self._take(self._shares.settle())
                self._archive_own(stop)
            self._commit_due(final=True)

    def _take(self, shares: Collection[int]) -> None:
        """Leaves the tables that belong to others now."""
        own = {*self._shares.own([*self._topics, *self._refused, *self._unwritable])}
        self._topics = {name: each for name, each in self._topics.items() if name in own}
        self._refused &= own
        self._unwritable = {name: until for name, until in self._unwritable.items() if name in own}
        if shares:
            logger().info("archives the tables of its shares", shares=sorted(shares))

    def _archive_own(self, stop: Stop) -> None:
        """Archives the tables of this process, until the assignment changes or `stop` is requested."""
        pause = min(LONGEST_PAUSE, self._limits.seconds / 4)
        discovered_at = float("-inf")
        while not self._shares.changed and not stop.wait(0.0):
            if time.monotonic() - discovered_at >= DISCOVER_SECONDS:
                self._discover()
                discovered_at = time.monotonic()
            busy = self._commit_due()
            if not busy and not self._maintain():
                stop.wait(pause if self._topics else WITHOUT_TABLES)

    def _discover(self) -> None:
        """Opens the tables of topics that are new. A topic that cannot be archived is no problem of the others."""
        kafka = self._reading.kafka
        found = {
            each.topic: each for each in archived_topics(self._sink, kafka.topics, self._streams, partitions(kafka))
        }
        for topic in map(found.__getitem__, self._shares.own(found)):
            if topic.topic in self._topics or topic.topic in self._refused:
                continue
            try:
                self._topics[topic.topic] = self._opened(topic)
            except ArchiveUnwritable as error:
                logger().error(error.message, hint=error.hint)
                continue
            except (ConfigError, SchemaError, OffsetsLost) as error:
                self._refuse(topic.topic, error)
            self._committed_at[topic.topic] = time.monotonic()

    def _opened(self, topic: ArchivedTopic) -> tuple[TopicSink, Maintenance]:
        folder = self._archive / topic.topic
        table = ArchiveTable.open(folder, topic.topic, topic.view, topic.columns, self._sink.buckets)
        committing = Committing(*self._reading, self._shares.writer(topic.topic))
        return TopicSink(topic, table, committing, self._limits), Maintenance(topic, table, self._sink)

    def _refuse(self, topic: str, error: ConfigError | SchemaError | OffsetsLost) -> None:
        logger().error(f"{topic} is not archived: {error.message}", hint=error.hint)
        self._refused.add(topic)
        self._topics.pop(topic, None)

    def _commit_due(self, *, final: bool = False) -> bool:
        """Commits each topic once, if it is due or this is the `final` commit; whether any was."""
        lag, committed = 0, False
        for name, (sink, _) in list(self._topics.items()):
            if (ends := self._ends(sink.topic)) is None:
                continue
            began = time.monotonic()
            waited = float("inf") if final else began - self._committed_at[name]
            if began < self._unwritable.get(name, began) and not final:
                lag += sink.lag(ends)
                continue
            try:
                done = sink.commit(ends, waited)
            except ArchiveUnwritable as error:
                self._wait(name, error)
                lag += sink.lag(ends)
                continue
            except SchemaError as error:
                self._refuse(name, error)
                continue
            if done is not None:
                self._resumed(name)
                committed = True
                self._committed_at[name] = time.monotonic()
                self._metrics.records(done.rows + done.dead_letters)
                self._metrics.emitted(done.rows)
                self._metrics.written(done.size)
                self._metrics.dead_letters(done.dead_letters, "decode")
                self._metrics.batch(time.monotonic() - began)
            elif waited >= self._limits.seconds:  # nothing to commit: the next record waits a whole interval
                self._committed_at[name] = began
            lag += sink.lag(ends)
        self._metrics.lag(lag)
        return committed

    def _wait(self, topic: str, error: ArchiveUnwritable) -> None:
        """Once for each time that it cannot be written."""
        if topic not in self._unwritable:
            logger().error(error.message, hint=error.hint)
        self._unwritable[topic] = time.monotonic() + UNWRITABLE_SECONDS

    def _resumed(self, topic: str) -> None:
        if self._unwritable.pop(topic, None) is not None:
            logger().info(f"{topic} can be archived again: its table can be written")

    def _maintain(self) -> bool:
        """One step of upkeep of one table; false if there was none."""
        return any(maintenance.step(datetime.now(UTC)) for _, maintenance in self._topics.values())

    def _ends(self, topic: ArchivedTopic) -> Ends | None:
        found = self._reading.committed.ends([(topic.topic, p) for p in range(topic.partitions)])
        return None if found is None else {partition: end for (_, partition), end in found.items()}
