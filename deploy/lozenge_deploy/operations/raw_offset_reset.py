"""Offset reset of a normaliser: moves its group to other offsets of the raw topics, and records that in its coverage.

A normaliser belongs to no agent: an operator has to stop it first. The offsets of a raw topic and their coverage
segment change in one transaction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

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
    """The progress of a normaliser on one raw topic."""

    topic: str
    partitions: Sequence[PartitionProgress]


def raw_progress(kafka: KafkaSettings, app: str, only: str | None = None) -> list[RawProgress]:
    """The progress of `app` on each raw topic that it has read, or on `only` one; raises UsageError."""
    existing = partitions(kafka)
    known = {p.topic for p in committed(kafka, app)} | {segment.topic for segment in _segments(kafka, app)}
    topics = sorted(topic for topic in known if topic in existing)
    if only is not None:
        wanted = kafka.topics.prefixed(only)
        topics = [topic for topic in topics if topic in (only, wanted)]
    if not topics:
        raise UsageError(
            f"looking for the offsets of {app}{f' on {only}' if only else ''}: it has committed none",
            hint=f"raw topics that it has read: {', '.join(sorted(known)) or 'none'}",
        )
    return [RawProgress(topic, list(_progress(kafka, app, topic, existing[topic]))) for topic in topics]


def plan(app: str, progress: Sequence[RawProgress], target: Target) -> list[OffsetReset]:
    """The resets of the topics of `progress`; raises UsageError with every offset that a topic does not have."""
    return [
        OffsetReset(
            app,
            each.topic,
            current={p.partition: p.position for p in each.partitions},
            target=checked_target(app, each.topic, each.partitions, target(each.topic, each.partitions)),
            state="keep",
            consequence=None,
        )
        for each in progress
    ]


def at_moment(kafka: KafkaSettings, moment: datetime) -> Target:
    """The first offsets that were written at `moment` or later."""
    return lambda topic, progress: offsets_at(kafka, topic, len(progress), moment)


def await_stopped(kafka: KafkaSettings, app: str, limit: float, waiting: Callable[[], None]) -> None:
    """Returns once no instance of `app` is a member of its group; calls `waiting` if that is not so at once.

    Raises UsageError after `limit` seconds.
    """
    if has_no_member(kafka, app):
        return
    waiting()
    if not wait_until(lambda: has_no_member(kafka, app), limit, poll=0.2):
        raise UsageError(
            f"resetting the offsets of {app}: an instance still runs; nothing has changed",
            hint=f"stop it, for example with `docker compose stop {app}`; --folder names that of a platform "
            "that `lozenge up` runs",
        )


def commit(kafka: KafkaSettings, app: str, resets: Sequence[OffsetReset]) -> Iterator[str]:
    """Commits each reset of `app`; yields each as one line. Raises Fenced, BrokerUnavailable."""
    segments, coverage = _segments(kafka, app), kafka.topics.detector(app).coverage
    writer = TransactionalWriter(kafka, f"{app}@offsets")
    writer.fence()
    for reset in resets:
        group = ConsumerGroup(kafka, app, reset.topic, len(reset.current))
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


def _segments(kafka: KafkaSettings, app: str) -> list[CoverageSegment]:
    return read_log(kafka, kafka.topics.detector(app).coverage, CoverageSegment)


def _progress(kafka: KafkaSettings, app: str, topic: str, count: int) -> Iterator[PartitionProgress]:
    group = ConsumerGroup(kafka, app, topic, count)
    try:
        glanced = group.glance()
        for p, (low, end) in group.bounds().items():
            yield PartitionProgress(p, low, None if p in glanced.missing else glanced.offsets[p], end)
    finally:
        group.close()


def has_no_member(kafka: KafkaSettings, app: str) -> bool:
    """Whether no instance of the normaliser `app` is a member of its group; raises BrokerUnavailable."""
    admin = AdminClient(kafka.client())  # it has to live until the answer is there
    group = kafka.topics.prefixed(app)
    try:
        found = admin.describe_consumer_groups([group], request_timeout=CALL_SECONDS)[group].result()
    except KafkaException as error:
        raise BrokerUnavailable(
            f"describing the group {group}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
        ) from error
    return found.state in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
