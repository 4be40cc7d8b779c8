"""The right of one job to commit for partitions of its input, and where it has come to there.

A claim refuses if a newer generation has committed, fences earlier writers, reads the offsets, checks again, and writes
its coverage segment. The first check does not wait for a transaction that a dead writer left open, because the fence
ends it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lozenge.contracts.record import Record
from lozenge.detector.manifest import Manifest
from lozenge.job.commit.coverage_writer import CoverageWriter
from lozenge.job.commit.published_alerts import published_since
from lozenge.job.commit.resume_filter import ResumeFilter
from lozenge.job.commit.resume_offsets import is_far_behind, resolve_start_offsets, within
from lozenge.job.identity import Identity
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.group_offsets import ConsumerGroup, Positions, refuse_if_stale
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import PartitionWriters
from lozenge.process.logging import logger
from lozenge.protocol.commit_metadata import NO_CHECKPOINT, CommitMetadata
from lozenge.protocol.coverage import STARTED, CoverageSegment, Versions


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where a job starts: the committed `offsets` by partition, and the `metadata` of the last commit."""

    offsets: Mapping[int, int]
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class Claim(StartPosition):
    """The claim of one job, as one of several instances if `shared`. It skips what `skipped` names."""

    shared: bool
    skipped: ResumeFilter


class Claims:
    """Makes the claims of one job, with its consumer group, its writers and its coverage. One thread uses it."""

    def __init__(self, kafka: KafkaSettings, identity: Identity, partitions: int, declaration: Manifest) -> None:
        self._kafka, self._identity, self._partitions = kafka, identity, partitions
        self._declaration = declaration
        self._shared = False
        self.group = ConsumerGroup(kafka, identity.app, identity.input, partitions)
        self.writers = PartitionWriters(kafka, identity.app)
        self.coverage = CoverageWriter(kafka, identity)
        outside = declaration.mode.published_ahead or declaration.guarantee != "exactly-once"
        if outside and not declaration.published_by_spark:
            _ = self.writers.acknowledged  # the first alert need not wait for the half second in which it gets its id

    def position(self) -> StartPosition:
        """Where a standby starts, without a claim; raises OffsetsLost, BrokerUnavailable."""
        self.coverage.read()
        return self._resumed(self.group.read())

    def claim(
        self, generation: int, versions: Versions, among: Collection[int] | None = None, *, was_standby: bool = False
    ) -> Claim:
        """Makes this job the only one that can commit, as `generation`, at the group's offsets.

        The claim is of all partitions, or of those `among` them that one of several instances is assigned. The latter
        needs no newer generation, because partitions move between instances. `versions` are those it processes with.

        An at-most-once job starts at the end of its input without state. A newest-first job starts at the end if that
        is far away. Neither does if it `was_standby`. Raises StaleGeneration, OffsetsLost, BrokerUnavailable.
        """
        from_end = self._declaration.guarantee == "at-most-once" and not was_standby
        assigned, self._shared = self._shared or among is not None, among is not None
        mine = range(self._partitions) if among is None else sorted(among)
        if not assigned:
            refuse_if_stale(self.group.glance(), generation, self._identity.app)
        self.coverage.read(any_topic=from_end, again=assigned)
        before = self.coverage.newest
        self.writers.fence(mine, shared=self._shared, before=before is not None and before.shared)
        positions = self.group.read(mine)
        if not assigned:
            refuse_if_stale(positions, generation, self._identity.app)
        if from_end:
            claim = Claim(self._ends(), CommitMetadata(generation), self._shared, ResumeFilter())
            self._begin(claim, versions, positions, self._deletions())
            return claim
        start = self._resumed(positions)
        if not was_standby and not self._shared:
            start = self._without_backlog(start)
        ahead = self._declaration.mode.published_ahead  # then the query reads later what to skip
        skipped = ResumeFilter() if ahead else self.published_ahead(start)
        metadata = start.metadata
        if ahead and not metadata.output_ahead:  # from now on it is
            metadata = replace(metadata, checkpoint=NO_CHECKPOINT, output_ahead=True)
        metadata = replace(metadata, generation=max(generation, metadata.generation))
        claim = Claim(start.offsets, metadata, self._shared, skipped)
        self._begin(claim, versions, positions)
        return claim

    def published_ahead(self, start: StartPosition) -> ResumeFilter:
        """The alerts published in Real-Time Mode of events from `start` on; raises BrokerUnavailable.

        No other process may still publish. A rule whose guarantee allows repeats does without the read.
        """
        repeats = self._declaration.stateless and self._declaration.guarantee != "exactly-once"
        if not start.metadata.output_ahead or repeats:
            return ResumeFilter()
        published = published_since(self._kafka, self._identity.input, start.offsets, self._identity.alerts)
        return ResumeFilter(published, self._ends())

    def _resumed(self, positions: Positions) -> StartPosition:
        app, topic, known = self._identity.app, self._identity.input, self.coverage.newest
        bounds = within(self.group.bounds(), positions.offsets)
        missed, stateless = self._declaration.missed, self._declaration.stateless
        offsets = resolve_start_offsets(app, topic, positions, bounds, known, missed, stateless=stateless)
        return StartPosition(offsets, positions.metadata or CommitMetadata(0))

    def _without_backlog(self, start: StartPosition) -> StartPosition:
        ends = self._ends()
        if not is_far_behind(start.offsets, ends, self._declaration, self.coverage.newest):
            return start
        backlog = sum(ends[p] - offset for p, offset in start.offsets.items())
        logger().warning("starting at the newest events; the backlog is backfilled concurrently", backlog=backlog)
        return StartPosition(ends, start.metadata)

    def write(
        self,
        segment: CoverageSegment,
        start: StartPosition,
        deletions: Collection[Record] = (),
        *,
        moved: CoverageSegment | None = None,
    ) -> None:
        """Writes a coverage segment, after that of offsets that were `moved`, and the offsets of `start`.

        It is one transaction for each writer. Raises Fenced, BrokerUnavailable.
        """
        for writer, own in self.writers.each():
            before = self.coverage.records(moved, own) if moved is not None else []
            records = [*deletions, *before, *self.coverage.records(segment, own)]
            writer.commit(records, self.group, within(start.offsets, own), start.metadata)
        self.coverage.written(segment)

    def _begin(self, claim: Claim, versions: Versions, before: Positions, deletions: Collection[Record] = ()) -> None:
        generation = claim.metadata.generation
        moved = self.coverage.moved_by_others(generation, before)
        segment = self.coverage.segment(STARTED, versions, generation, before, claim.offsets, shared=claim.shared)
        self.write(segment, claim, deletions, moved=moved)

    def _deletions(self) -> list[Record]:
        """Deletes a fold's stored state. An aggregate keeps the ids of the alerts that it has emitted."""
        if not self._declaration.kind.state_in_topic:
            return []
        stored = read_latest(self._kafka, self._identity.state, range(self._partitions), check=lambda *_: None)
        return [Record(self._identity.state, partition, key, None) for partition, key, _ in stored]

    def _ends(self) -> dict[int, int]:
        return {p: end for p, (_, end) in self.group.bounds().items()}
