"""Offset reset of upstream: moves its group to other offsets of the raw topics, and records that in its coverage.

Upstream belongs to no agent: an operator has to stop it first. The offsets of a raw topic and their coverage
segment change in one transaction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from lozenge.contracts.topics import UPSTREAM
from lozenge.errors import BrokerUnavailable, UsageError
from lozenge.kafka.group_offsets import ConsumerGroup, committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions, topic_id
from lozenge.kafka.topic_reader import CALL_SECONDS, offsets_at, read_log
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process.user_name import user_name
from lozenge.process.waiting import wait_until
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import OFFSETS_RESET, CoverageSegment, newest, processed_offsets
from lozenge_deploy.control.records import format_offsets
from lozenge_deploy.operations.offset_reset import OffsetReset, PartitionProgress, checked_target

Target = Callable[[str, Sequence[PartitionProgress]], dict[int, int]]
"""The wanted offsets of a raw topic with this progress, by partition."""


@dataclass(frozen=True)
class RawProgress:
    """The progress of upstream on one raw topic."""

    topic: str
    partitions: Sequence[PartitionProgress]


def raw_progress(kafka: KafkaSettings, only: str | None = None) -> list[RawProgress]:
    """The progress of upstream on each raw topic that it has read, or on `only` one; raises UsageError."""
    existing = partitions(kafka)
    known = {p.topic for p in committed(kafka, UPSTREAM)} | {segment.topic for segment in _segments(kafka)}
    topics = sorted(topic for topic in known if topic in existing)
    if only is not None:
        wanted = kafka.topics.prefixed(only)
        topics = [topic for topic in topics if topic in (only, wanted)]
    if not topics:
        raise UsageError(
            f"looking for the offsets of upstream{f' on {only}' if only else ''}: it has committed none",
            hint=f"raw topics that it has read: {', '.join(sorted(known)) or 'none'}",
        )
    return [RawProgress(topic, list(_progress(kafka, topic, existing[topic]))) for topic in topics]


def plan(kafka: KafkaSettings, progress: Sequence[RawProgress], target: Target) -> list[OffsetReset]:
    """The resets of the topics of `progress`; raises UsageError with every offset that a topic does not have."""
    return [
        OffsetReset(
            UPSTREAM,
            each.topic,
            current={p.partition: p.position for p in each.partitions},
            target=checked_target(UPSTREAM, each.topic, each.partitions, target(each.topic, each.partitions)),
            state="keep",
            consequence=None,
        )
        for each in progress
    ]


def at_moment(kafka: KafkaSettings, moment: datetime) -> Target:
    """The first offsets that were written at `moment` or later."""
    return lambda topic, progress: offsets_at(kafka, topic, len(progress), moment)


def await_stopped(kafka: KafkaSettings, limit: float, waiting: Callable[[], None]) -> None:
    """Returns once no instance is a member of the group; calls `waiting` if that is not so at once.

    Raises UsageError after `limit` seconds.
    """
    if _is_empty(kafka):
        return
    waiting()
    if not wait_until(lambda: _is_empty(kafka), limit, poll=0.2):
        raise UsageError(
            "resetting the offsets of upstream: an instance still runs; nothing has changed",
            hint="stop it, for example with `docker compose stop upstream`; --folder names that of a platform "
            "that `lozenge up` runs",
        )


def commit(kafka: KafkaSettings, resets: Sequence[OffsetReset]) -> Iterator[str]:
    """Commits each reset; yields each as one line. Raises Fenced, BrokerUnavailable."""
    segments, coverage = _segments(kafka), kafka.topics.detector(UPSTREAM).coverage
    writer = TransactionalWriter(kafka, f"{UPSTREAM}@offsets")
    writer.fence()
    for reset in resets:
        group = ConsumerGroup(kafka, UPSTREAM, reset.topic, len(reset.current))
        try:
            before = group.read()
            ended = processed_offsets(
                before.offsets, before.missing | before.moved, newest([s for s in segments if s.topic == reset.topic])
            )
            target = {**before.offsets, **reset.target}
            segment = CoverageSegment(
                *(OFFSETS_RESET, "", "", 0, ended, target),
                input_id=topic_id(kafka, reset.topic),
                topic=reset.topic,
                by=user_name(),
            )
            writer.commit([segment.record(coverage)], group, target, CommitMetadata())
            yield f"{reset.topic} from {format_offsets(ended)} to {format_offsets(target)}"
        finally:
            group.close()


def _segments(kafka: KafkaSettings) -> list[CoverageSegment]:
    return read_log(kafka, kafka.topics.detector(UPSTREAM).coverage, CoverageSegment)


def _progress(kafka: KafkaSettings, topic: str, count: int) -> Iterator[PartitionProgress]:
    group = ConsumerGroup(kafka, UPSTREAM, topic, count)
    try:
        glanced = group.glance()
        for p, (low, end) in group.bounds().items():
            yield PartitionProgress(p, low, None if p in glanced.missing else glanced.offsets[p], end)
    finally:
        group.close()


def _is_empty(kafka: KafkaSettings) -> bool:
    admin, group = (
        AdminClient(kafka.client()),
        kafka.topics.prefixed(UPSTREAM),
    )  # it has to live until the answer is there
    try:
        found = admin.describe_consumer_groups([group], request_timeout=CALL_SECONDS)[group].result()
    except KafkaException as error:
        raise BrokerUnavailable(
            f"describing the group {group}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
        ) from error
    return found.state in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
