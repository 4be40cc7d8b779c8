"""One topic on its way into its table: what is committed next, and how.

The table owns the position. A commit is one of the table first: the rows and the new ends of the partitions. Then one
transaction of Kafka has the dead letters of these records and moves the group, which lag tools read. A process that
is killed in between leaves the group behind the table; the next one makes those dead letters when it starts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lozenge.archive.archived_topics import ArchivedTopic
from lozenge.archive.columns import rows_of
from lozenge.archive.delta_table import ArchiveTable, Ends
from lozenge.contracts.record import Record, format_positions
from lozenge.errors import DecodeError, OffsetsLost
from lozenge.kafka.group_offsets import Committed, ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import fetch
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process.logging import logger
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.sink.commit_plan import FIRST_ROW_BYTES, CommitLimits, next_ranges, row_size
from lozenge.sink.dead_letter_records import dead_letter
from lozenge.sink.decoded_batch import Ranges, RecordReader, UnreadableRecord


class ArchiveReading(NamedTuple):
    """What the sinks of all topics share: who they are, and how they read."""

    kafka: KafkaSettings
    app: str
    reader: RecordReader
    committed: Committed


class Committing(NamedTuple):
    """The same, and how the sink of a topic writes to Kafka."""

    kafka: KafkaSettings
    app: str
    reader: RecordReader
    committed: Committed
    writer: TransactionalWriter


class TopicCommit(NamedTuple):
    """What a commit had: offsets, rows, their bytes in memory, and dead letters."""

    offsets: int
    rows: int
    size: int
    dead_letters: int


class TopicSink:
    """Archives one topic; used by one thread. It begins where the table ends."""

    def __init__(self, topic: ArchivedTopic, table: ArchiveTable, shared: Committing, limits: CommitLimits) -> None:
        """Raises OffsetsLost if the topic ends before its table, BrokerUnavailable, TopicError."""
        self.topic, self.table = topic, table
        self._shared, self._limits = shared, limits
        self._row_bytes = FIRST_ROW_BYTES
        self._group = ConsumerGroup(shared.kafka, shared.app, topic.topic, topic.partitions, shared.committed)
        self._seen = table.ends(range(topic.partitions))
        self._next = self._starts()
        self._finish_before()

    def lag(self, ends: Ends) -> int:
        """The offsets from the table's ends to the topic's."""
        return sum(max(0, end - self._next[partition]) for partition, end in ends.items())

    def commit(self, ends: Ends, waited: float) -> TopicCommit | None:
        """Commits what is due of the offsets before `ends`, `waited` seconds after the last commit; None if nothing is.

        Raises Fenced if another process has archived this topic meanwhile.
        """
        ranges = next_ranges(self._next, ends, self._limits, self._row_bytes, waited)
        if not ranges:
            return None
        batch = self._shared.reader.read(self.topic, ranges, self.table.buckets)
        rows = rows_of(batch.rows, self.topic.columns)
        moved = {partition: end for partition, (_, end) in ranges.items()}
        self.table.append(rows, self._seen, moved)
        self._seen = {**self._seen, **moved}
        self._next = {**self._next, **moved}
        self._row_bytes = row_size(self._row_bytes, len(rows), rows.nbytes)
        self._move_group(batch.unreadable, moved)
        offsets = sum(end - start for start, end in ranges.values())
        return TopicCommit(offsets, len(rows), rows.nbytes, len(batch.unreadable))

    def _starts(self) -> dict[int, int]:
        """Where each partition is read next."""
        bounds = self._group.bounds()
        beyond = {p: end for p, end in self._seen.items() if end > bounds[p][1]}
        if beyond:
            raise OffsetsLost(
                f"archiving {self.topic.topic}: it ends before its table",
                problems=[
                    f"partition {p} is archived to {end}, and ends at {bounds[p][1]}" for p, end in beyond.items()
                ],
                hint="the topic was deleted and created again: begin another archive, or move the folder of this table",
            )
        lost = {p: bounds[p][0] - end for p, end in self._seen.items() if end < bounds[p][0]}
        if lost:
            logger().error(
                f"{sum(lost.values())} offsets of {self.topic.topic} were deleted before they were archived",
                offsets=format_positions((p, self._seen[p]) for p in sorted(lost)),
                hint="a topic has to keep its records for longer than its sink may be down",
            )
        return {p: max(earliest, self._seen.get(p, earliest)) for p, (earliest, _) in bounds.items()}

    def _finish_before(self) -> None:
        """Does what a process that was killed between its two commits has left: dead letters, and the group."""
        positions = self._group.read()
        group = {p: o for p, o in positions.offsets.items() if p not in positions.missing}
        earliest = {p: low for p, (low, _) in self._group.bounds().items()}
        behind = {p: (group.get(p, earliest[p]), end) for p, end in self._seen.items() if group.get(p) != end}
        left: Ranges = {p: (max(start, earliest[p]), end) for p, (start, end) in behind.items() if start < end}
        left = {p: (start, end) for p, (start, end) in left.items() if start < end}
        found = self._shared.reader.read(self.topic, left, self.table.buckets).unreadable if left else ()
        if behind:
            self._move_group(found, {p: self._seen[p] for p in behind})

    def _move_group(self, unreadable: Iterable[UnreadableRecord], ends: Ends) -> None:
        records = list(self._dead_letters(list(unreadable)))
        self._shared.writer.commit(records, self._group, ends, CommitMetadata())

    def _dead_letters(self, unreadable: list[UnreadableRecord]) -> Iterator[Record]:
        positions = [(each.partition, each.offset) for each in unreadable]
        originals: Iterable[Any] = fetch(self._shared.kafka, self.topic.topic, positions) if positions else []
        for each, original in zip(unreadable, originals, strict=True):
            yield dead_letter(self._shared.kafka, self._shared.app, original, DecodeError(each.problem))
