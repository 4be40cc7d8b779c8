"""Owns a job's offsets: claims partitions, commits each batch in one transaction, and buffers a standby's output."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TypeVar

import msgspec

from lozenge.contracts.record import Partition, Record
from lozenge.detector.manifest import Manifest
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import dead_letters
from lozenge.job.commit.delivery_guarantees import COMMIT_BY_GUARANTEE
from lozenge.job.commit.published_alerts import published_since
from lozenge.job.commit.resume_offsets import is_far_behind, refuse_recreated_topic, resolve_start_offsets
from lozenge.job.commit.standby_buffer import StandbyBuffer
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.group_offsets import Group, Positions, refuse_if_stale
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import AcknowledgedWriter, PartitionWriters, TransactionalWriter
from lozenge.process.logging import logger
from lozenge.protocol.commit_metadata import NO_CHECKPOINT, CommitMetadata
from lozenge.protocol.coverage import RECONFIGURED, STARTED, CoverageSegment, newest, processed_offsets

T = TypeVar("T")


class Committer:
    """The offsets of one job on its input, and the one transaction per batch that moves them.

    The delivery guarantee decides how a batch's alerts relate to its transaction. One of several instances has offsets
    of its own partitions only, and a transaction for each of them.

    In Real-Time Mode alerts are published before the offsets of their events are committed, those of a rule by Spark.
    The next job, in any mode, skips alerts that are already published.

    `offsets` are the group's committed offsets. `read_offsets` are how far the query has read: less where an aggregate
    counts again, more where a job is a standby. A standby keeps its output in `buffer`.
    """

    def __init__(self, kafka: KafkaSettings, identity: Identity, partitions: int, declaration: Manifest) -> None:
        self._kafka, self._identity, self._partitions = kafka, identity, partitions
        self._declaration = declaration
        self._group = Group(kafka, identity.app, identity.input, partitions)
        self._writers = PartitionWriters(kafka, identity.app)
        self._shared = False
        self.metadata = CommitMetadata(0)
        self.offsets = dict[int, int]()
        self.read_offsets = dict[int, int]()
        self.buffer: StandbyBuffer | None = None
        self._input_id = ""
        self._known: CoverageSegment | None = None
        self._unacknowledged = False  # alerts that `publish` has sent may not be acknowledged yet
        self._uncertain = False  # a transaction has failed, and may have been committed all the same
        self._published: frozenset[str] = frozenset()  # alerts that were published before their offsets,
        self._published_until = dict[int, int]()  # which are of events before these
        if (declaration.realtime or declaration.guarantee != "exactly-once") and not declaration.published_by_spark:
            _ = self._acknowledged  # the first alert need not wait for the half second in which it gets its id

    def claim(self, generation: int, digest: str, among: Collection[int] | None = None) -> None:
        """Makes this job the only one that can commit, as `generation`, at the group's offsets.

        The claim is of all partitions, or of those `among` them that one of several instances is assigned. The latter
        needs no newer generation, because partitions move between instances.

        An at-most-once job starts at the end of its input without state. A newest-first job starts at the end if that
        is far away, unless it was a standby or shares its input.

        The claim refuses if a newer generation has committed, fences earlier writers, reads the offsets, checks again,
        and writes its coverage segment. The first check does not wait for a transaction that a dead writer left open,
        because the fence ends it. Raises StaleGeneration, OffsetsLost, BrokerUnavailable.
        """
        from_end = self._declaration.guarantee == "at-most-once" and self.buffer is None
        assigned, self._shared = self._shared or among is not None, among is not None
        mine = range(self._partitions) if among is None else sorted(among)
        if not assigned:
            refuse_if_stale(self._group.glance(), generation, self._identity.app)
        self._read_coverage(any_topic=from_end, again=assigned)
        self._writers.fence(mine, shared=self._shared, before=self._known is not None and self._known.shared)
        positions = self._group.read(mine)
        if not assigned:
            refuse_if_stale(positions, generation, self._identity.app)
        if from_end:
            self.offsets = self._ends()
            self.metadata = CommitMetadata(generation)
            self._write_segment(STARTED, digest, positions, deletions=self._deletions())
            return
        self._resume(positions)
        if self.buffer is None and not self._shared:
            self._skip_backlog()
        if not self._declaration.realtime:
            self.skip_published()
        elif not self.metadata.output_ahead:  # from now on it is
            self.metadata = replace(self.metadata, checkpoint=NO_CHECKPOINT, output_ahead=True)
        self.metadata = replace(self.metadata, generation=max(generation, self.metadata.generation))
        self._write_segment(STARTED, digest, positions)

    def published_ids(self) -> frozenset[str]:
        """The ids of alerts published in Real-Time Mode of events from the offsets on; raises BrokerUnavailable.

        No other process may still publish. A rule whose guarantee allows repeats does without the read.
        """
        repeats = self._declaration.stateless and self._declaration.guarantee != "exactly-once"
        if not self.metadata.output_ahead or repeats:
            return frozenset()
        return published_since(self._kafka, self._identity.input, self.offsets, self._identity.alerts)

    def skip_published(self) -> None:
        """From now on `commit` and `publish` skip the alerts published by now; raises BrokerUnavailable."""
        self._await_acknowledgements()
        self._published, self._published_until = self.published_ids(), self._ends()

    def record_settings(self, digest: str) -> None:
        """Writes a coverage segment from which on these settings hold; nothing if they do already."""
        if self._known is not None and self._known.digest != digest:
            self._write_segment(RECONFIGURED, digest, Positions(self.offsets, self.metadata))

    def begin_standby(self) -> None:
        """Starts at the group's offsets without a claim, and buffers the output from now on.

        Raises OffsetsLost, BrokerUnavailable.
        """
        self._read_coverage()
        self._resume(self._group.read())
        self.buffer = StandbyBuffer(self.offsets)

    def lag_to_live(self) -> int:
        """How many offsets the live job has committed that this one has not read; drops what it buffered of them."""
        committed = self._group.glance().offsets
        assert self.buffer is not None
        self.buffer.prune(committed)
        return sum(max(0, offset - self.read_offsets[p]) for p, offset in committed.items())

    def live_has_committed(self) -> bool:
        """Whether the live job has committed since this one began as a standby."""
        return dict(self._group.read().offsets) != self.offsets

    def publish_buffered(
        self, operator: Operator, encoder: AlertEncoder, metadata: CommitMetadata
    ) -> BatchResult | None:
        """After a claim: commits the buffered output, once the query has read what the replaced job has committed.

        Returns what was published; None if the query has not read that far.
        """
        if self.buffer is None or any(self.read_offsets[p] < offset for p, offset in self.offsets.items()):
            return None
        buffered = self.buffer.prune(self.offsets)
        self.buffer = None
        result = buffered._replace(alerts=operator.cut_over(self._kafka, buffered.alerts))
        self.commit(operator, result, encoder, self.read_offsets, metadata)
        return result

    def commit(
        self,
        operator: Operator,
        result: BatchResult,
        encoder: AlertEncoder,
        ends: dict[int, int],
        metadata: CommitMetadata,
    ) -> int:
        """Commits dead letters, state and offsets in one transaction, and alerts as guaranteed.

        Returns how many events were committed. Raises Fenced, BrokerUnavailable.
        """
        self._await_acknowledgements()
        now, changes = datetime.now(UTC), operator.state_changes()
        offsets = {p: max(end, self.offsets[p]) for p, end in ends.items()}
        events = sum(end - self.offsets[p] for p, end in offsets.items())
        result = result._replace(alerts=self._unpublished(result.alerts, encoder))
        if self._published and all(offset >= self._published_until[p] for p, offset in offsets.items()):
            self._published = frozenset()
        if self._published:  # what was published ahead is not all before these offsets
            metadata = replace(metadata, output_ahead=True)
        for writer, own in self._writers.each():
            part = result.within(own) if self._shared else result
            others = [*dead_letters(self._kafka, self._identity, part)]
            others += [record for record in changes if record.partition in own]
            COMMIT_BY_GUARANTEE[self._declaration.guarantee](
                [encoder.record(draft, now) for draft in part.alerts],
                others,
                partial(self._transact, writer, _of(offsets, own), metadata),
                lambda records: self._acknowledged.write(records),
            )
        self.metadata = metadata
        return events

    def publish(self, drafts: Sequence[DraftAlert], encoder: AlertEncoder) -> Sequence[DraftAlert]:
        """Publishes alerts before their batch has ended; returns those that were not published before.

        The next commit waits for their acknowledgement. Raises BrokerUnavailable.
        """
        now, new = datetime.now(UTC), self._unpublished(drafts, encoder)
        if new:
            self._acknowledged.send([encoder.record(draft, now) for draft in new])
            self._unacknowledged = True
        return new

    def refresh(self) -> None:
        """Commits the same offsets again, so that they do not expire; not if a transaction's result is unknown."""
        if self._uncertain:
            return
        for writer, own in self._writers.each():
            writer.commit([], self._group, _of(self.offsets, own), self.metadata)

    def first_reached(self, records: Iterable[FailedRecord], ends: Mapping[int, int]) -> list[FailedRecord]:
        """Those of `records` that a batch up to `ends` is the first to reach."""
        new = {p: range(max(self.read_offsets[p], self.offsets[p]), end) for p, end in ends.items()}
        return [record for record in records if record.offset in new.get(record.partition, ())]

    def ends(self) -> dict[Partition, int] | None:
        """The ends of its partitions as they are now; None while the broker does not answer at once."""
        return self._group.ends(self.offsets)

    def close(self) -> None:
        """Closes the connection, once every published alert is acknowledged; raises BrokerUnavailable."""
        self._await_acknowledgements()
        self._group.close()

    def _await_acknowledgements(self) -> None:
        if self._unacknowledged:
            self._acknowledged.flush()
        self._unacknowledged = False

    def _unpublished(self, drafts: Sequence[DraftAlert], encoder: AlertEncoder) -> Sequence[DraftAlert]:
        if not self._published:
            return drafts
        return [draft for draft in drafts if encoder.alert_id(draft) not in self._published]

    def _transact(
        self,
        writer: TransactionalWriter,
        offsets: dict[int, int],
        metadata: CommitMetadata,
        records: Sequence[Record],
    ) -> None:
        """One transaction. `offsets` change with each transaction and not with the batch.

        Else a job whose batch fails after the first of several transactions would commit older offsets on its way out.
        """
        self._uncertain = True
        writer.commit(records, self._group, offsets, metadata)
        self.offsets, self._uncertain = self.offsets | offsets, False

    @cached_property
    def _acknowledged(self) -> AcknowledgedWriter:
        return AcknowledgedWriter(self._kafka)

    def _read_coverage(self, *, any_topic: bool = False, again: bool = False) -> None:
        """Reads what earlier jobs of this detector processed; once, before anything is fenced."""
        if self._identity.coverage is not None and (again or not self._input_id):
            self._known = newest(read_log(self._kafka, self._identity.coverage, CoverageSegment))
            self._input_id = topic_id(self._kafka, self._identity.input)
            if not any_topic:
                refuse_recreated_topic(self._identity.app, self._identity.input, self._known, self._input_id)

    def _deletions(self) -> list[Record]:
        """Deletes a fold's stored state. An aggregate keeps the ids of the alerts that it has emitted."""
        if self._declaration.kind != "stateful":
            return []
        stored = read_latest(self._kafka, self._identity.state, range(self._partitions))
        return [Record(self._identity.state, partition, key, None) for partition, key, _ in stored]

    def _write_segment(self, reason: str, digest: str, before: Positions, deletions: Sequence[Record] = ()) -> None:
        segment = CoverageSegment(
            reason=reason,
            release=self._identity.release,
            digest=digest,
            generation=self.metadata.generation,
            ended=processed_offsets(before.offsets, before.missing, self._known),
            since=dict(self.offsets),
            input_id=self._input_id,
            shared=self._shared,
        )
        for writer, own in self._writers.each():
            records = [*deletions]
            if self._identity.coverage is not None:
                mine = msgspec.structs.replace(segment, ended=_of(segment.ended, own), since=_of(segment.since, own))
                records.append(mine.record(self._identity.coverage))
            writer.commit(records, self._group, _of(self.offsets, own), self.metadata)
        if self._identity.coverage is not None:
            self._known = segment

    def _ends(self) -> dict[int, int]:
        return {p: end for p, (_, end) in self._group.bounds().items()}

    def _skip_backlog(self) -> None:
        ends = self._ends()
        if is_far_behind(self.offsets, ends, self._declaration, self._known):
            backlog = sum(ends[p] - offset for p, offset in self.offsets.items())
            logger().warning("starting at the newest events; the backlog is backfilled concurrently", backlog=backlog)
            self.offsets = ends

    def _resume(self, positions: Positions) -> None:
        app, topic = self._identity.app, self._identity.input
        bounds = _of(self._group.bounds(), positions.offsets)
        self.offsets = resolve_start_offsets(app, topic, positions, bounds, self._known, self._declaration.missed)
        self.metadata = positions.metadata or CommitMetadata(0)


def _of(values: Mapping[int, T], partitions: Collection[int]) -> dict[int, T]:
    return {partition: value for partition, value in values.items() if partition in partitions}
