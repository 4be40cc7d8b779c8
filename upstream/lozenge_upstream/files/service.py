"""The running file source: files in, records of a raw topic out, each row once.

Any number of instances share the files: a file belongs to a partition of the topic of positions, and Kafka's group
protocol assigns the partitions. The new owner of a partition fences the writer of the old one and reads its positions.
So a file of a dead instance continues at the row after its last commit.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from lozenge.apps import file_source_app
from lozenge.contracts.record import Record
from lozenge.errors import TopicError
from lozenge.file_sources.definition import FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS, partition_of_file, positions_topic, topics_of
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.followed_release import FollowedRelease
from lozenge.kafka.group_membership import Membership
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.topic_reader import open_transactions
from lozenge.kafka.writers import TransactionalWriter
from lozenge.metrics.file_metrics import FileMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.protocol import file_positions
from lozenge.protocol.file_positions import FilePosition
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest
from lozenge_upstream.files.copying import Copier, Targets
from lozenge_upstream.files.file_queue import FileQueue
from lozenge_upstream.files.next_step import Work, as_requested, counts, gone
from lozenge_upstream.files.rate_limit import RowRate
from lozenge_upstream.files.settings import FilesSettings
from lozenge_upstream.files.storage import Storage

_ASSIGNMENT_SECONDS = 0.1


def run(settings: FilesSettings, kafka: KafkaSettings) -> None:
    """Copies until SIGTERM or SIGINT, then ends after the current transaction.

    Raises UsageError, ConfigError, TopicError or BrokerUnavailable before anything is read, and Fenced or
    BrokerUnavailable later; a restart continues after the last commit.
    """
    stop = StopSignal()
    app = file_source_app(settings.source)
    logging.configure(app, instance=settings.instance)
    metrics = FileMetrics(app, settings.instance)
    following = FollowedSource(
        kafka, kafka.topics.control.sources, SOURCES, settings.source, lambda release: release.definition()
    )
    with closing(following) as followed, Reporter(metrics, kafka):
        ensure_topics(kafka, topics_of(kafka.topics, settings.source))
        membership = Membership(kafka, app, [positions_topic(kafka.topics, settings.source).name])
        membership.join()
        try:
            while not stop.requested:
                metrics.release = followed.name
                SourceInstance(followed.value, kafka, metrics, followed).run(membership, stop)
        finally:
            membership.leave()
    logging.logger().info(f"{app} stopped")


FollowedSource = FollowedRelease[SourceRelease, SourceRequest, FileSource]


def _targets(kafka: KafkaSettings, source: FileSource) -> Targets:
    topics, existing = kafka.topics, partitions(kafka)
    raw = topics.prefixed(source.topic)
    if raw not in existing:
        raise TopicError(
            f"looking for {raw}, the topic of the file source {source.name}: it does not exist",
            hint="a mapping of a stream names its raw topics; `lozenge up` creates those",
        )
    positions, dead = topics_of(topics, source.name)
    return Targets(raw, existing[raw], positions.name, dead.name, dead.partitions)


@dataclass
class Owned:
    """The partitions of this instance: a writer for each, and the positions of their files."""

    writers: dict[int, TransactionalWriter] = field(default_factory=dict)
    positions: dict[str, FilePosition] = field(default_factory=dict)


class SourceInstance:
    """One instance of a file source, which copies the files of the partitions that it holds, by one release."""

    def __init__(
        self, source: FileSource, kafka: KafkaSettings, metrics: FileMetrics, followed: FollowedSource
    ) -> None:
        self._source, self._kafka, self._targets = source, kafka, _targets(kafka, source)
        self._metrics, self._followed = metrics, followed
        self._storage = Storage(source)
        self._copier = Copier(source, self._storage, self._targets, metrics.instance)
        self._owned = Owned()
        self._limit = RowRate(self._rate, source.rows, time.monotonic)
        self._queue = FileQueue(source, self._storage)
        self._shown_at = float("-inf")

    def run(self, membership: Membership, stop: StopSignal) -> None:
        """Copies until `stop`, or until another release is deployed; raises as the module's `run` does."""
        while not stop.requested and self._followed.value == self._source:
            held = frozenset(partition for _, partition in membership.settle())
            self._take(held)
            ended = self._ended(stop, membership, held)
            while not ended():
                if not self._step(ended):
                    stop.wait(_ASSIGNMENT_SECONDS)

    def _take(self, held: frozenset[int]) -> None:
        """Fences those who wrote for new partitions, and reads what they have committed."""
        owned = self._owned
        owned.writers = {partition: writer for partition, writer in owned.writers.items() if partition in held}
        owned.positions = {path: each for path, each in owned.positions.items() if each.partition in owned.writers}
        self._queue.clear()
        if new := sorted(held - owned.writers.keys()):
            for partition in new:
                owned.writers[partition] = TransactionalWriter(self._kafka, f"{self._source.app}-{partition}")
                owned.writers[partition].fence()
            self._end_hanging(new)
            rows = read_latest(self._kafka, self._targets.positions, new, check=file_positions.decode)
            found = [file_positions.decode(row.key, row.value) for row in rows]
            owned.positions |= {position.path: position for position in found}
            logging.logger().info("copies the files of its partitions", partitions=sorted(held))

    def _end_hanging(self, new: list[int]) -> None:
        """Aborts what hangs in partitions whose writers were fenced, where no transaction can be open.

        A broker that is killed between the commit of a transaction and its markers may forget those (ADR 0172). What
        has no marker has not been read by anybody. It is aborted as a whole, and copied again.
        """
        for partition in sorted(open_transactions(self._kafka, self._targets.positions, new)):
            logging.logger().warning(
                "the broker has forgotten the end of a transaction; its rows are copied again", partition=partition
            )
            raw = [Record(self._targets.raw, number, None, b"") for number in range(self._targets.partitions)]
            dead = [
                Record(self._targets.dead_letters, number, None, b"")
                for number in range(self._targets.dead_letter_partitions)
            ]
            self._owned.writers[partition].abort_in([*raw, *dead, Record(self._targets.positions, partition, b"", b"")])

    def _step(self, ended: Callable[[], bool]) -> bool:
        """Does what is first to be done; returns whether there was anything."""
        self._followed.poll()
        if not self._owned.writers or self._followed.paused:
            return False
        if self._queue.is_due():
            self._list()
        if (first := self._queue.next()) is None:
            return False
        try:
            self._copy(first, ended)
        except OSError as error:
            self._queue.retry_later(first.file.path, error)
        return True

    def _list(self) -> None:
        """Lists the files, fails those that are gone, and plans what is to be done with the others."""
        self._queue.list_files()
        known = as_requested(self._owned.positions, self._followed.request.retries)
        for missing in gone(self._queue.found, known):
            self._record(self._copier.fail_gone(self._owned.writers[missing.partition], missing))
        self._queue.plan(known, self._owned.writers.keys())
        self._show()

    def _copy(self, each: Work, ended: Callable[[], bool]) -> None:
        writer = self._owned.writers[partition_of_file(each.file.path)]
        before = each.known.place.rows if each.known else 0
        with closing(self._copier.steps(each, writer, self._limit.size)) as steps:
            for position in steps:
                self._record(position)
                rows, before = position.place.rows - before, position.place.rows
                self._wait(rows, ended)
                self._followed.poll()
                if ended() or self._followed.paused:
                    return

    def _record(self, position: FilePosition) -> None:
        before = self._owned.positions.get(position.path)
        self._owned.positions[position.path] = position
        old_rows, old_bad = (before.place.rows, before.bad) if before and before.id == position.id else (0, 0)
        rows, bad = max(0, position.place.rows - old_rows), max(0, position.bad - old_bad)
        self._metrics.records(rows)
        self._metrics.emitted(rows - bad)
        self._metrics.dead_letters(bad, "decode")
        if position.reason:
            logging.logger().error(
                f"{position.path} has failed: {position.reason}",
                hint=f"other files continue; `lozenge source retry {self._source.name} {position.path}` tries it again",
            )
        if time.monotonic() - self._shown_at >= self._source.poll.total_seconds():
            self._show()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        self._metrics.files(*counts(self._queue.found, self._owned.positions, self._owned.writers.keys()))

    def _wait(self, rows: int, ended: Callable[[], bool]) -> None:
        while (left := self._limit.seconds_left(rows)) > 0 and not ended():
            time.sleep(min(left, _ASSIGNMENT_SECONDS))
            self._followed.poll()

    def _rate(self) -> float:
        """The rows a second of this instance: its share of the partitions."""
        return self._followed.request.rate * len(self._owned.writers) / FILE_PARTITIONS

    def _ended(self, stop: StopSignal, membership: Membership, held: frozenset[int]) -> Callable[[], bool]:
        """Whether it has to stop what it is doing: a stop, another assignment, or another release."""
        return lambda: (
            stop.requested
            or frozenset(partition for _, partition in membership.partitions) != held
            or self._followed.value != self._source
        )
