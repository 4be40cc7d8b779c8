"""Offset reset: moves a stopped detector to other offsets of its input.

The reset is one transaction under the detector's own transactional id. A job that still runs is fenced, and the
offsets change together with their coverage record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lozenge.durations import TooLong, duration
from lozenge.errors import UsageError
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import PartitionWriters
from lozenge.process.user_name import user_name
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import OFFSETS_RESET, CoverageSegment, newest, processed_offsets
from lozenge_deploy.control.records import format_offsets
from lozenge_deploy.operations import state_migration
from lozenge_deploy.operations.release_diff import Rows
from lozenge_deploy.releases.release import Release


@dataclass(frozen=True)
class PartitionProgress:
    """The offsets of a detector's group on one partition; `next` is None if it has never committed there."""

    partition: int
    earliest: int
    next: int | None
    end: int

    @property
    def position(self) -> int:
        """The offset to process next: the earliest if nothing was committed."""
        return self.earliest if self.next is None else self.next

    @property
    def lag(self) -> int | None:
        """Offsets to process, also those that are gone; None if the topic ends before the next offset."""
        return self.end - self.position if self.position <= self.end else None

    @property
    def lost(self) -> int:
        """Offsets that were deleted before they were processed."""
        return 0 if self.next is None else max(0, self.earliest - self.next)


@dataclass(frozen=True)
class OffsetReset:
    """The offsets `target` instead of `current`, by partition, and the state policy of the next start.

    Partitions that `target` does not name keep their offsets at the time of the reset.
    """

    detector: str
    topic: str
    current: Mapping[int, int]
    target: Mapping[int, int]
    state: str
    consequence: str | None
    """What happens to the state, for people; None for a detector without state."""

    def changes(self) -> Rows:
        """The changes as rows of field, current, new, effect."""
        rows: Rows = []
        for partition, current in sorted(self.current.items()):
            new = self.target.get(partition, current)
            by = new - current
            effect = f"{-by} reprocessed" if by < 0 else f"{by} skipped" if by else None
            rows.append({"field": f"partition {partition}", "current": current, "new": new, "effect": effect})
        state = {"field": "state", "current": None, "new": None, "effect": self.consequence}
        return [*rows, state] if self.consequence else rows


def progress_of(kafka: KafkaSettings, detector: str, topic: str) -> list[PartitionProgress]:
    """The progress of `detector` on each partition of `topic`; raises BrokerUnavailable."""
    group = ConsumerGroup(kafka, detector, topic, kafka.partitions)
    try:
        committed, bounds = group.glance(), group.bounds()
        return [
            PartitionProgress(p, low, None if p in committed.missing else committed.offsets[p], end)
            for p, (low, end) in bounds.items()
        ]
    finally:
        group.close()


def plan_reset(
    release: Release, topic: str, progress: Iterable[PartitionProgress], target: Mapping[int, int], state: str | None
) -> OffsetReset:
    """The reset of the detector of `release` from `progress` to `target`; partitions not named keep their offsets.

    Raises UsageError with every offset that the topic does not have, if no state policy fits, or if the next start
    would ignore the committed offsets.
    """
    if release.declaration.guarantee == "at-most-once":
        raise UsageError(
            f"resetting offsets of {release.detector}: {release.name} is at-most-once and starts at the newest event",
            hint=f"`lozenge backfill {release.detector}` processes the events that it skipped, if it is a rule",
        )
    detector = release.detector
    progress = list(progress)
    checked_target(detector, topic, progress, target)
    current = {each.partition: each.position for each in progress}
    policy = _policy(release, state)
    consequence = state_migration.consequence(release, release, policy)
    return OffsetReset(detector, topic, current, target, policy, consequence)


def checked_target(
    app: str, topic: str, progress: Iterable[PartitionProgress], target: Mapping[int, int]
) -> Mapping[int, int]:
    """`target`; raises UsageError with every offset of it that `topic` does not have."""
    known = {each.partition: each for each in progress}
    wrong = [
        f"{partition}:{offset} is not between {known[partition].earliest} and {known[partition].end}"
        if partition in known
        else f"{partition}:{offset}: no such partition"
        for partition, offset in sorted(target.items())
        if partition not in known or not known[partition].earliest <= offset <= known[partition].end
    ]
    if wrong:
        raise UsageError(
            f"resetting offsets of {app} on {topic}: {'; '.join(wrong)}",
            hint=f"`lozenge offsets {app}` shows the offsets that exist",
        )
    return target


def _policy(release: Release, state: str | None) -> str:
    detector, kind = release.detector, release.kind
    if release.declaration.stateless:
        if state is not None:
            raise UsageError(f"resetting offsets of {detector}: a {kind} has no state", hint="omit --state")
        return "keep"
    if state not in ("rebuild", "fresh"):
        raise UsageError(
            f"resetting offsets of {detector}: its state belongs to its committed offsets",
            hint="--state rebuild folds the retained events again, --state fresh starts empty",
        )
    if refusal := state_migration.refused(release, release, state):
        raise refusal
    return state


def moment_of(text: str, option: str = "--at") -> datetime:
    """The time in UTC that `text` names: "2h" ago, or ISO 8601, in UTC unless it has an offset. Raises UsageError."""
    now = datetime.now(UTC)
    try:
        moment = _before(now, text) or datetime.fromisoformat(text.strip())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise UsageError(
            f"reading {option} {text}: no calendar has that time", hint="--earliest processes all that is retained"
        ) from None
    except ValueError:
        raise UsageError(
            f"reading {option} {text}: not a time", hint=f'write it as {option} 2h (ago) or {option} "2026-11-20T12:00"'
        ) from None
    if moment > now + timedelta(seconds=1):
        raise UsageError(f"reading {option} {text}: it is in the future", hint="--latest processes only new records")
    return moment


def _before(now: datetime, text: str) -> datetime | None:
    """So long before `now` as `text` says; None if that is no duration. Raises OverflowError."""
    try:
        ago = duration(text)
    except TooLong as error:
        raise OverflowError from error
    except ValueError:
        return None
    return now - ago


def commit(kafka: KafkaSettings, reset: OffsetReset) -> str:
    """Commits the reset; returns it as one line of history. Raises Fenced, BrokerUnavailable."""
    topic = kafka.topics.detector(reset.detector).coverage
    known = newest(read_log(kafka, topic, CoverageSegment))
    input_id = topic_id(kafka, reset.topic)
    writers, group = (
        PartitionWriters(kafka, reset.detector),
        ConsumerGroup(kafka, reset.detector, reset.topic, kafka.partitions),
    )
    try:
        writers.fence(range(kafka.partitions), shared=False, before=known is not None and known.shared)
        before = group.read()
        stamp = before.metadata or CommitMetadata(0)
        new = CommitMetadata(stamp.generation + 1, batch=stamp.batch)
        ended = processed_offsets(before.offsets, before.missing | before.moved, known)
        target = {**processed_offsets(before.offsets, before.missing, known), **reset.target}
        line = CoverageSegment(
            reason=OFFSETS_RESET,
            release="",
            digest="",
            generation=new.generation,
            ended=ended,
            since=target,
            input_id=input_id,
            by=user_name(),
        )
        for writer, _ in writers.each():
            writer.commit([line.record(topic)], group, target, new)
        return f"from {format_offsets(ended)} to {format_offsets(target)}"
    finally:
        group.close()
