"""A broker that follows a script, as the commits of a job see it: claims, coverage and commits are the real ones."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from lozenge.contracts.record import Record
from lozenge.detector.events import Alert
from lozenge.detector.manifest import Manifest
from lozenge.job.batch_result import DraftAlert
from lozenge.job.commit import claim, coverage_writer
from lozenge.job.commit.claim import Claims
from lozenge.job.commit.resume_offsets import within
from lozenge.job.identity import Identity
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.group_offsets import Positions
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import STARTED, CoverageSegment
from tests.streams import AUTH

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARTITIONS = 2
KAFKA = KafkaSettings(bootstrap="127.0.0.1:1", partitions=PARTITIONS)
LIVE = Identity("spotter", "r2", live=True, key="card", topics=KAFKA.topics, stream=AUTH)
SHADOW = replace(LIVE, live=False)
SEGMENT = CoverageSegment(STARTED, "r1", "d1", 1, {0: 5, 1: 15}, {0: 5, 1: 15}, input_id="one")
"""What a job has written that ran before."""


def declared(kind: str = "rule", **manifest: Any) -> Manifest:
    """A declaration of this kind."""
    windows = {"lateness": "10m", "window": "1m"} if kind == "aggregate" else {}
    return Manifest.model_validate({"kind": kind, "owner": "tests", "title": "A test", **windows, **manifest})


def draft(partition: int, offset: int) -> DraftAlert:
    """An alert of the event at this offset, with a key that names it."""
    position = partition, offset
    return DraftAlert(Alert(reason="seen"), "card_1", f"{partition}:{offset}", AT, AT, position, position)


class Transaction(NamedTuple):
    """What one transaction has made valid."""

    records: list[Record]
    offsets: dict[int, int]
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class Fencing:
    """Which writers were fenced: for these partitions, one for each if `shared`, and what was `before`."""

    partitions: Collection[int]
    shared: bool
    before: bool


class ScriptedBroker:
    """What is committed and written, and in `calls` the order of what was asked. A call in `fails` raises."""

    def __init__(self) -> None:
        self.positions = Positions({0: 10, 1: 20}, CommitMetadata(1, "c1", 4))
        self.bounds = {0: (0, 110), 1: (0, 120)}
        self.segments = [SEGMENT]
        self.input_id = "one"
        self.stored: list[Stored] = []
        self.published: frozenset[str] = frozenset()
        """The ids of alerts that were published ahead of the committed offsets."""
        self.committed_meanwhile: Positions | None = None
        """What the former owner commits just before it is fenced."""
        self.calls: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.fencings: list[Fencing] = []
        self.transactions: list[Transaction] = []
        self.acknowledged: list[Record] = []
        """Records written outside of a transaction."""

    def connect(self, patch: pytest.MonkeyPatch) -> None:
        """From now on claims and commits meet this broker."""
        patch.setattr(claim, "ConsumerGroup", lambda *_: ScriptedGroup(self))
        patch.setattr(claim, "PartitionWriters", lambda *_: ScriptedWriters(self))
        patch.setattr(claim, "published_since", self._published_since)
        patch.setattr(claim, "read_latest", lambda *_, check: self.stored)
        patch.setattr(coverage_writer, "read_log", self._read_log)
        patch.setattr(coverage_writer, "topic_id", lambda *_: self.input_id)

    def claims(self, declaration: Manifest | None = None, identity: Identity = LIVE) -> Claims:
        """The claims of a job."""
        return Claims(KAFKA, identity, PARTITIONS, declaration or declared())

    def called(self, name: str) -> None:
        """Keeps the call; raises its error if it is to fail."""
        self.calls.append(name)
        if name in self.fails:
            raise self.fails[name]

    def count(self, name: str) -> int:
        """How often something was asked."""
        return self.calls.count(name)

    def _published_since(self, *_: object) -> frozenset[str]:
        self.called("read the published alerts")
        return self.published

    def _read_log(self, *_: object) -> list[CoverageSegment]:
        self.called("read the coverage")
        return self.segments


class ScriptedGroup:
    """The positions of a group."""

    metadata: object = None

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker

    def read(self, among: Collection[int] | None = None) -> Positions:
        self._broker.called("read the offsets")
        wanted = range(PARTITIONS) if among is None else among
        found = self._broker.positions
        mine = set(wanted)
        moved = found.moved & mine
        return replace(found, offsets=within(found.offsets, mine), missing=found.missing & mine, moved=moved)

    def glance(self) -> Positions:
        self._broker.called("glance at the offsets")
        return self._broker.positions

    def bounds(self) -> dict[int, tuple[int, int]]:
        return dict(self._broker.bounds)


class ScriptedWriters:
    """The writers of a job. One outside of transactions is as the others: it keeps what was sent."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker
        self._owns: list[frozenset[int]] = []
        self.acknowledged = ScriptedAcknowledgedWriter(broker)

    def fence(self, partitions: Collection[int], *, shared: bool, before: bool) -> None:
        broker = self._broker
        broker.called("fence")
        broker.fencings.append(Fencing(frozenset(partitions), shared, before))
        self._owns = [frozenset([p]) for p in partitions] if shared else [frozenset(partitions)]
        broker.positions = broker.committed_meanwhile or broker.positions

    def each(self) -> Iterator[tuple["ScriptedWriter", frozenset[int]]]:
        for own in self._owns:
            yield ScriptedWriter(self._broker, own), own


class ScriptedWriter:
    """Commits transactions. That of one partition alone fails as "commit <partition>"."""

    def __init__(self, broker: ScriptedBroker, own: frozenset[int]) -> None:
        self._broker, self._own = broker, own

    def commit(
        self, records: Sequence[Record], group: object, offsets: Mapping[int, int], metadata: CommitMetadata
    ) -> None:
        broker = self._broker
        broker.called("commit" if len(self._own) > 1 else f"commit {min(self._own)}")
        broker.transactions.append(Transaction(list(records), dict(offsets), metadata))
        broker.positions = Positions({**broker.positions.offsets, **offsets}, metadata)


class ScriptedAcknowledgedWriter:
    """Sends records, and waits for their acknowledgement."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker

    def send(self, records: Sequence[Record]) -> None:
        self._broker.called("send")
        self._broker.acknowledged += records

    def flush(self) -> None:
        self._broker.called("flush")

    def write(self, records: Sequence[Record]) -> None:
        self.send(records)
        self.flush()
