"""Moving a detector to other offsets of its input, while nothing of it runs: where to, what follows, and the move.

The move is one transaction under the detector's own transactional id: whoever of it may still run is fenced, and
offsets and their line of coverage change together.
"""

import getpass
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lozenge.contracts import topics
from lozenge.durations import duration
from lozenge.errors import UsageError
from lozenge.job.commit.resume_offsets import decided
from lozenge.kafka.partition_writers import PartitionWriters
from lozenge.kafka.positions import CommitMetadata, Group
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.protocol.coverage import MOVED, CoverageSegment, newest, openings
from lozenge_deploy.control.records import places
from lozenge_deploy.operations import state_migration
from lozenge_deploy.operations.release_diff import Rows
from lozenge_deploy.releases.release import Release

PARTITIONS = topics.EVENT_PARTITIONS


@dataclass(frozen=True)
class Place:
    """Where a detector stands on one partition; `next` is None if it has never committed there."""

    partition: int
    earliest: int
    next: int | None
    end: int


@dataclass(frozen=True)
class Move:
    """Offsets `target` instead of those `now`, by partition, and what the memory begins with.

    Partitions that `target` does not name stay where the detector stands when the move is made.
    """

    detector: str
    topic: str
    now: Mapping[int, int]
    target: Mapping[int, int]
    state: str
    memory: str | None

    def changes(self) -> Rows:
        """What differs: rows of what, now, then, and what follows of it."""
        rows: Rows = []
        for partition, now in sorted(self.now.items()):
            then = self.target.get(partition, now)
            by = then - now
            follows = f"{-by} judged again" if by < 0 else f"{by} left out" if by else None
            rows.append({"what": f"partition {partition}", "now": now, "then": then, "follows": follows})
        memory = {"what": "state", "now": None, "then": None, "follows": self.memory}
        return [*rows, memory] if self.memory else rows


def standing_on(kafka: KafkaSettings, detector: str, topic: str) -> list[Place]:
    """Where `detector` stands on each partition of `topic`; raises BrokerUnavailable."""
    group = Group(kafka, detector, topic, PARTITIONS)
    try:
        now, bounds = group.glance(), group.bounds()
        return [Place(p, low, None if p in now.missing else now.offsets[p], end) for p, (low, end) in bounds.items()]
    finally:
        group.close()


def planned(release: Release, standing: Iterable[Place], target: Mapping[int, int], state: str | None) -> Move:
    """What moving the detector of `release`, `standing` there, to `target` changes; partitions not named stay.

    Raises UsageError with every offset that the topic does not have, if the memory has no policy that fits, or if its
    next start would not keep the move.
    """
    if release.declaration.guarantee == "at-most-once":
        raise UsageError(
            f"moving {release.detector}: {release.name} is at-most-once, and begins at the newest event",
            hint=f"`lozenge fill {release.detector}` judges what it left out, if it is a rule",
        )
    detector, topic = release.detector, topics.events_by(release.declaration.key)
    there = {place.partition: place for place in standing}
    wrong = [
        f"{partition}:{offset} is not between {there[partition].earliest} and {there[partition].end}"
        if partition in there
        else f"{partition}:{offset}: there is no such partition"
        for partition, offset in sorted(target.items())
        if partition not in there or not there[partition].earliest <= offset <= there[partition].end
    ]
    if wrong:
        raise UsageError(
            f"moving {detector} on {topic}: {'; '.join(wrong)}",
            hint=f"`lozenge offsets {detector}` shows what there is",
        )
    now = {p: place.earliest if place.next is None else place.next for p, place in there.items()}
    policy = _policy(release, state)
    memory = state_migration.consequence(release, release, policy)
    return Move(detector, topic, now, target, policy, memory)


def _policy(release: Release, state: str | None) -> str:
    detector, kind = release.detector, release.kind
    if kind not in ("stateful", "aggregate"):
        if state is not None:
            raise UsageError(f"moving {detector}: a {kind} remembers nothing", hint="leave out --state")
        return "keep"
    if state not in ("rebuild", "fresh"):
        raise UsageError(
            f"moving {detector}: what it remembers belongs to the offsets where it stands",
            hint="--state rebuild makes its memory again of the retained events, --state fresh begins empty",
        )
    if refusal := state_migration.refused(release, release, state):
        raise refusal
    return state


def moment_of(text: str) -> datetime:
    """The moment that `text` names: "2h" ago, or ISO 8601, in UTC unless it says otherwise. Raises UsageError."""
    try:
        moment = datetime.now(UTC) - duration(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(
                f"reading --at {text}: no time", hint='write it as --at 2h (ago) or --at "2026-11-20T12:00"'
            ) from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > datetime.now(UTC) + timedelta(seconds=1):
        raise UsageError(f"reading --at {text}: that is still to come", hint="--latest judges what comes from now on")
    return moment


def given(text: str) -> dict[int, int]:
    """The offsets in "0:9120 1:88" (or with commas); raises UsageError."""
    parts = re.split(r"[\s,]+", text.strip())
    found = [re.fullmatch(r"(\d+):(\d+)", part) for part in parts]
    offsets = {int(match[1]): int(match[2]) for match in found if match is not None}
    if len(offsets) != len(parts):
        raise UsageError(f"reading {text}: not offsets by partition", hint='write them as "0:9120 1:88", each once')
    return offsets


def commit(kafka: KafkaSettings, move: Move) -> str:
    """Makes the move; returns it in one line of history. Raises Fenced, BrokerUnavailable."""
    topic = topics.coverage(move.detector)
    known = newest(openings(kafka, topic))
    now = topic_id(kafka, move.topic)
    writers, group = PartitionWriters(kafka, move.detector), Group(kafka, move.detector, move.topic, PARTITIONS)
    try:
        writers.fence(range(PARTITIONS), shared=False, before=known is not None and known.shared)
        before = group.read()
        stamp = before.stamp or CommitMetadata(0)
        new = CommitMetadata(stamp.generation + 1, batch=stamp.batch)
        ended = decided(before, known)
        then = {**ended, **move.target}
        line = CoverageSegment(
            what=MOVED,
            release="",
            digest="",
            generation=new.generation,
            ended=ended,
            since=then,
            input=now,
            by=getpass.getuser(),
        )
        for writer, _ in writers.each():
            writer.commit([line.record(topic)], group, then, new)
        return f"from {places(ended)} to {places(then)}"
    finally:
        group.close()
