"""What a job has decided and how far it has read: the only place that claims, commits and holds back."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TypeVar

import msgspec

from lozenge.contracts.record import Partition
from lozenge.detector.manifest import Manifest
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.dead_letter_encoder import dead_letters
from lozenge.job.commit.delivery_guarantees import WAYS, AcknowledgedWriter
from lozenge.job.commit.published_alerts import published_since
from lozenge.job.commit.resume_offsets import decided, refuse_another, resumable, too_far
from lozenge.job.commit.standby_buffer import StandbyBuffer
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.kafka.partition_writers import PartitionWriters
from lozenge.kafka.positions import REALTIME, CommitMetadata, Group, Positions, refuse_if_stale
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.state_topic import read_state
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.writers import Record, TransactionalWriter
from lozenge.process.logging import logger
from lozenge.protocol.coverage import SETTINGS, START, CoverageSegment, newest, openings

T = TypeVar("T")


class Committer:
    """Positions of one job on its input, and the one transaction per batch that moves them.

    How the alerts of a batch lie to its transaction is the declared guarantee. One of several instances has positions
    on its own partitions only, and a transaction for each of them.

    In Real-Time Mode alerts are told before their offsets are committed, those of a rule by Spark. Whoever comes after
    such a job, in whatever mode, leaves out what that has told.

    `offsets` are the group's: what is decided. `read` is how far the query has read: behind them where an
    aggregate counts again, before them where a job stands by. While it stands by, `held` keeps what it would tell.
    """

    def __init__(self, kafka: KafkaSettings, identity: Identity, partitions: int, declaration: Manifest) -> None:
        self._kafka, self._identity, self._partitions = kafka, identity, partitions
        self._declaration = declaration
        self._group = Group(kafka, identity.app, identity.input, partitions)
        self._writers = PartitionWriters(kafka, identity.app)
        self._shared = False
        self.stamp = CommitMetadata(0)
        self.offsets = dict[int, int]()
        self.read = dict[int, int]()
        self.held: StandbyBuffer | None = None
        self._input = ""
        self._known: CoverageSegment | None = None
        self._unflushed = False  # what `tell` has sent may not be acknowledged yet
        self._uncertain = False  # a transaction failed, and may have been committed all the same
        self._told: frozenset[str] = frozenset()  # what a predecessor in Real-Time Mode has told beyond its offsets,
        self._until = dict[int, int]()  # which is of events before these
        if (declaration.realtime or declaration.guarantee != "exactly-once") and not declaration.told_by_spark:
            _ = self._acknowledged  # it asks for its id for half a second, for which the first alert need not wait

    def claim(self, generation: int, digest: str, among: Collection[int] | None = None) -> None:
        """Makes this job the only one that can commit, as `generation`, at the offsets that the group has.

        Of all partitions, or of those `among` them that it was given as one of several instances: those need no newer
        generation, for they come and go between them.

        At most once it begins at the end of its input and without memory, and newest first at the end if that is far,
        unless it has stood by and nothing lies between, or shares. Refuses if a newer generation committed, fences
        earlier writers, reads the offsets, looks again, and writes the claim down, with its line of coverage. The first
        look does not wait for a transaction that a dead writer left open: the fence ends it. Raises StaleGeneration,
        OffsetsLost, BrokerUnavailable.
        """
        afresh = self._declaration.guarantee == "at-most-once" and self.held is None
        given, self._shared = self._shared or among is not None, among is not None
        mine = range(self._partitions) if among is None else sorted(among)
        if not given:
            refuse_if_stale(self._group.glance(), generation, self._identity.app)
        self._learn(any_topic=afresh, again=given)
        self._writers.fence(mine, shared=self._shared, before=self._known is not None and self._known.shared)
        positions = self._group.read(mine)
        if not given:
            refuse_if_stale(positions, generation, self._identity.app)
        if afresh:
            self.offsets = self._ends()
            self.stamp = CommitMetadata(generation)
            self._open(START, digest, positions, forgotten=self._deletions())
            return
        self._stand(positions)
        if self.held is None and not self._shared:
            self._leave_behind()
        if not self._declaration.realtime:
            self.skip_published()
        elif not self.stamp.ahead:  # from now on it is
            self.stamp = replace(self.stamp, checkpoint=REALTIME)
        self.stamp = replace(self.stamp, generation=max(generation, self.stamp.generation))
        self._open(START, digest, positions)

    def told(self) -> frozenset[str]:
        """The ids of what has been told in Real-Time Mode of events at or behind the offsets; raises BrokerUnavailable.

        Nothing that could tell more may be running. A rule that may repeat itself saves the reading.
        """
        repeats = self._declaration.kind == "rule" and self._declaration.guarantee != "exactly-once"
        if not self.stamp.ahead or repeats:
            return frozenset()
        return published_since(self._kafka, self._identity.input, self.offsets, self._identity.alerts)

    def skip_published(self) -> None:
        """From now on `commit` and `tell` leave out what is `told` by now; raises BrokerUnavailable."""
        self._flush_told()
        self._told, self._until = self.told(), self._ends()

    def processed_by(self, digest: str) -> None:
        """Writes down from where on other settings hold; does nothing where they do already."""
        if self._known is not None and self._known.digest != digest:
            self._open(SETTINGS, digest, Positions(self.offsets, self.stamp))

    def stand_by(self) -> None:
        """Begins at the group's offsets, claims nothing, and holds back what is judged from now on.

        Raises OffsetsLost, BrokerUnavailable.
        """
        self._learn()
        self._stand(self._group.read())
        self.held = StandbyBuffer(self.offsets)

    def behind(self) -> int:
        """How many offsets the live job has decided that this one has not read; forgets what was held of them."""
        decided = self._group.glance().offsets
        assert self.held is not None
        self.held.prune(decided)
        return sum(max(0, offset - self.read[p]) for p, offset in decided.items())

    def moved(self) -> bool:
        """Whether the live job has committed since this one stood by."""
        return dict(self._group.read().offsets) != self.offsets

    def settle(self, host: Operator, alerts: AlertEncoder, stamp: CommitMetadata) -> BatchResult | None:
        """After a claim: tells what was held back, once it has read as far as its predecessor has decided.

        Returns what was told; None if that is still to come.
        """
        if self.held is None or any(self.read[p] < offset for p, offset in self.offsets.items()):
            return None
        held = self.held.prune(self.offsets)
        self.held = None
        told = held._replace(alerts=host.cut_over(self._kafka, held.alerts))
        self.commit(host, told, alerts, self.read, stamp)
        return told

    def commit(
        self, host: Operator, judged: BatchResult, alerts: AlertEncoder, ends: dict[int, int], stamp: CommitMetadata
    ) -> int:
        """Dead letters, state and offsets in one transaction, and alerts as guaranteed; how many events that decides.

        Raises Fenced, BrokerUnavailable.
        """
        self._flush_told()
        now, changes = datetime.now(UTC), host.state_changes()
        offsets = {p: max(end, self.offsets[p]) for p, end in ends.items()}
        events = sum(end - self.offsets[p] for p, end in offsets.items())
        judged = judged._replace(alerts=self._untold(judged.alerts, alerts))
        if self._told and all(offset >= self._until[p] for p, offset in offsets.items()):
            self._told = frozenset()
        for writer, own in self._writers.each():
            part = judged.within(own) if self._shared else judged
            others = [*dead_letters(self._kafka, self._identity, part)]
            others += [record for record in changes if record.partition in own]
            WAYS[self._declaration.guarantee](
                [alerts.record(draft, now) for draft in part.alerts],
                others,
                partial(self._decide, writer, _of(offsets, own), stamp),
                lambda records: self._acknowledged.write(records),
            )
        self.stamp = stamp
        return events

    def tell(self, drafts: Sequence[DraftAlert], alerts: AlertEncoder) -> Sequence[DraftAlert]:
        """Tells `drafts` before their batch has ended; returns those not told before.

        Whether they were acknowledged is awaited by whatever counts on it. Raises BrokerUnavailable.
        """
        now, untold = datetime.now(UTC), self._untold(drafts, alerts)
        if untold:
            self._acknowledged.send([alerts.record(draft, now) for draft in untold])
            self._unflushed = True
        return untold

    def touch(self) -> None:
        """Commits the same offsets again, so that they never expire; not if they may be others by now."""
        if self._uncertain:
            return
        for writer, own in self._writers.each():
            writer.commit([], self._group, _of(self.offsets, own), self.stamp)

    def undecided(self, records: Iterable[FailedRecord], ends: Mapping[int, int]) -> list[FailedRecord]:
        """Those of `records` that a batch up to `ends` is the first to reach."""
        new = {p: range(max(self.read[p], self.offsets[p]), end) for p, end in ends.items()}
        return [record for record in records if record.offset in new.get(record.partition, ())]

    def ends(self) -> dict[Partition, int] | None:
        """The ends of its partitions as they are now; None while the broker does not answer at once."""
        return self._group.ends(self.offsets)

    def close(self) -> None:
        """Gives the connection back, once all that was told is acknowledged; raises BrokerUnavailable."""
        self._flush_told()
        self._group.close()

    def _flush_told(self) -> None:
        if self._unflushed:
            self._acknowledged.flush()
        self._unflushed = False

    def _untold(self, drafts: Sequence[DraftAlert], alerts: AlertEncoder) -> Sequence[DraftAlert]:
        if not self._told:
            return drafts
        return [draft for draft in drafts if alerts.alert_id(draft) not in self._told]

    def _decide(
        self, writer: TransactionalWriter, offsets: dict[int, int], stamp: CommitMetadata, records: Sequence[Record]
    ) -> None:
        """One transaction; what it has moved has moved, whatever becomes of the batch's other parts."""
        self._uncertain = True
        writer.commit(records, self._group, offsets, stamp)
        self.offsets, self._uncertain = self.offsets | offsets, False

    @cached_property
    def _acknowledged(self) -> AcknowledgedWriter:
        return AcknowledgedWriter(self._kafka)

    def _learn(self, *, any_topic: bool = False, again: bool = False) -> None:
        """What is known of the input from other jobs of this detector; asked once, before anybody is fenced."""
        if self._identity.coverage is not None and (again or not self._input):
            self._known = newest(openings(self._kafka, self._identity.coverage))
            self._input = topic_id(self._kafka, self._identity.input)
            if not any_topic:
                refuse_another(self._identity.app, self._identity.input, self._known, self._input)

    def _deletions(self) -> list[Record]:
        """The deletion of all that a fold has stored. Which crossings were told, an aggregate never forgets."""
        if self._declaration.kind != "stateful":
            return []
        stored = read_state(self._kafka, self._identity.state, range(self._partitions))
        return [Record(self._identity.state, partition, key, None) for partition, key, _ in stored]

    def _open(self, what: str, digest: str, before: Positions, forgotten: Sequence[Record] = ()) -> None:
        line = CoverageSegment(
            what=what,
            release=self._identity.release,
            digest=digest,
            generation=self.stamp.generation,
            ended=decided(before, self._known),
            since=dict(self.offsets),
            input=self._input,
            shared=self._shared,
        )
        for writer, own in self._writers.each():
            records = [*forgotten]
            if self._identity.coverage is not None:
                mine = msgspec.structs.replace(line, ended=_of(line.ended, own), since=_of(line.since, own))
                records.append(mine.record(self._identity.coverage))
            writer.commit(records, self._group, _of(self.offsets, own), self.stamp)
        if self._identity.coverage is not None:
            self._known = line

    def _ends(self) -> dict[int, int]:
        return {p: end for p, (_, end) in self._group.bounds().items()}

    def _leave_behind(self) -> None:
        ends = self._ends()
        if too_far(self.offsets, ends, self._declaration, self._known):
            left = sum(ends[p] - offset for p, offset in self.offsets.items())
            logger().warning("begins with the newest events, and judges the others beside them", left=left)
            self.offsets = ends

    def _stand(self, positions: Positions) -> None:
        app, topic = self._identity.app, self._identity.input
        bounds = _of(self._group.bounds(), positions.offsets)
        self.offsets = resumable(app, topic, positions, bounds, self._known, self._declaration.missed)
        self.stamp = positions.stamp or CommitMetadata(0)


def _of(values: Mapping[int, T], partitions: Collection[int]) -> dict[int, T]:
    return {partition: value for partition, value in values.items() if partition in partitions}
