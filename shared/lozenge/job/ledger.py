"""What a job has decided and how far it has read: the only place that claims, commits and holds back."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from lozenge.admin import topic_id
from lozenge.job.continuity import Missed, refuse_another, resumable
from lozenge.job.coverage import SETTINGS, START, Opening, newest, openings
from lozenge.job.held import Held
from lozenge.job.hosts import Host
from lozenge.job.identity import Identity
from lozenge.job.judgement import Judgement
from lozenge.job.output import AlertWriter, Poisoned, dead_letter_record, unplaced_record
from lozenge.job.positions import Group, Positions, Stamp, refuse_if_stale
from lozenge.job.source import fetch
from lozenge.job.transaction import Record, TransactionalWriter
from lozenge.kafka import KafkaSettings


class Ledger:
    """Positions of one job on its input, and the one transaction per batch that moves them.

    `offsets` are the group's: what is decided. `read` is how far the query has read: behind them where an
    aggregate counts again, before them where a job stands by. While it stands by, `held` keeps what it would tell.
    """

    def __init__(self, kafka: KafkaSettings, identity: Identity, partitions: int, missed: Missed) -> None:
        self._kafka, self._identity, self._missed = kafka, identity, missed
        self._group = Group(kafka, identity.app, identity.input, partitions)
        self._writer = TransactionalWriter(kafka, identity.app)  # so a second job of any name fences it
        self.stamp = Stamp(0)
        self.offsets = dict[int, int]()
        self.read = dict[int, int]()
        self.held: Held | None = None
        self._input = ""
        self._known: Opening | None = None

    def claim(self, generation: int, digest: str) -> None:
        """Makes this job the only one that can commit, as `generation`, at the offsets that the group has.

        Refuses if a newer generation committed, fences earlier writers, reads the offsets, looks again, and
        writes the claim down, with its line of coverage. The first look does not wait for a transaction that a dead
        writer left open: the fence ends it. Raises StaleGeneration, OffsetsLost, BrokerUnavailable.
        """
        refuse_if_stale(self._group.glance(), generation, self._identity.app)
        self._learn()
        self._writer.fence()
        positions = self._group.read()
        refuse_if_stale(positions, generation, self._identity.app)
        self._stand(positions)
        self.stamp = Stamp(generation, self.stamp.checkpoint, self.stamp.batch)
        self._open(START, digest, positions)

    def judge_by(self, digest: str) -> None:
        """Writes down from where on other settings hold; does nothing where they do already."""
        if self._known is not None and self._known.digest != digest:
            self._open(SETTINGS, digest, Positions(self.offsets, self.stamp))

    def stand_by(self) -> None:
        """Begins at the group's offsets, claims nothing, and holds back what is judged from now on.

        Raises OffsetsLost, BrokerUnavailable.
        """
        self._learn()
        self._stand(self._group.read())
        self.held = Held(self.offsets)

    def behind(self) -> int:
        """How many offsets the live job has decided that this one has not read; forgets what was held of them."""
        decided = self._group.glance().offsets
        assert self.held is not None
        self.held.prune(decided)
        return sum(max(0, offset - self.read[p]) for p, offset in decided.items())

    def moved(self) -> bool:
        """Whether the live job has committed since this one stood by."""
        return dict(self._group.read().offsets) != self.offsets

    def settle(self, host: Host, alerts: AlertWriter, stamp: Stamp) -> Judgement | None:
        """After a claim: tells what was held back, once it has read as far as its predecessor has decided.

        Returns what was told; None if that is still to come.
        """
        if self.held is None or any(self.read[p] < offset for p, offset in self.offsets.items()):
            return None
        held = self.held.prune(self.offsets)
        self.held = None
        told = held._replace(findings=host.take_over(self._kafka, held.findings))
        self.commit(host, told, alerts, self.read, stamp)
        return told

    def commit(self, host: Host, judged: Judgement, alerts: AlertWriter, ends: dict[int, int], stamp: Stamp) -> int:
        """Alerts, dead letters, state and offsets in one transaction; returns how many events that decides.

        Raises Fenced, BrokerUnavailable.
        """
        now = datetime.now(UTC)
        records = [alerts.record(finding, now) for finding in judged.findings]
        records += dead_letters(self._kafka, self._identity, judged.poisoned)
        records += [unplaced_record(self._identity, unplaced) for unplaced in judged.unplaced]
        decided = {p: max(end, self.offsets[p]) for p, end in ends.items()}
        self._writer.commit([*records, *host.changes()], self._group, decided, stamp)
        events = sum(end - self.offsets[p] for p, end in decided.items())
        self.stamp, self.offsets = stamp, self.offsets | decided
        return events

    def touch(self) -> None:
        """Commits the same offsets again, so that they never expire."""
        self._writer.commit([], self._group, self.offsets, self.stamp)

    def undecided(self, records: Iterable[Poisoned], ends: dict[int, int]) -> list[Poisoned]:
        """Those of `records` that a batch up to `ends` is the first to reach."""
        new = {p: range(max(self.read[p], self.offsets[p]), end) for p, end in ends.items()}
        return [record for record in records if record.offset in new.get(record.partition, ())]

    def close(self) -> None:
        """Gives the connection back."""
        self._group.close()

    def _learn(self) -> None:
        """What is known of the input from earlier jobs of this detector; asked once, before anybody is fenced."""
        if self._identity.coverage is not None and not self._input:
            self._known = newest(openings(self._kafka, self._identity.coverage))
            self._input = topic_id(self._kafka, self._identity.input)
            refuse_another(self._identity.app, self._identity.input, self._known, self._input)

    def _open(self, what: str, digest: str, before: Positions) -> None:
        records = []
        if self._identity.coverage is not None:
            self._known = Opening(
                what=what,
                release=self._identity.release,
                digest=digest,
                generation=self.stamp.generation,
                ended=dict(before.offsets),
                since=dict(self.offsets),
                input=self._input,
            )
            records.append(self._known.record(self._identity.coverage))
        self._writer.commit(records, self._group, self.offsets, self.stamp)

    def _stand(self, positions: Positions) -> None:
        app, topic = self._identity.app, self._identity.input
        self.offsets = resumable(app, topic, positions, self._group.bounds(), self._known, self._missed)
        self.stamp = positions.stamp or Stamp(0)


def dead_letters(kafka: KafkaSettings, identity: Identity, poisoned: Sequence[Poisoned]) -> Iterator[Record]:
    """The dead letter of each record, whose bytes are fetched from the input; raises TopicError if one is gone."""
    if not poisoned:
        return
    originals = fetch(kafka, identity.input, [(p.partition, p.offset) for p in poisoned])
    for record, original in zip(poisoned, originals, strict=True):
        yield dead_letter_record(identity, original, record)
