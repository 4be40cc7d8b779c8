"""The lag of a consumer group, in offsets and in seconds."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from confluent_kafka import TopicPartition

from lozenge.contracts.record import Partition
from lozenge.kafka.group_offsets import committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions as existing_topics
from lozenge.kafka.topic_reader import CALL_SECONDS, read_since, reader, write_times
from lozenge.protocol.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class GroupLag:
    """The lag of a group.

    - `metadata`: of the newest commit.
    - `offsets`: between the committed offsets and the ends of the partitions.
    - `seconds`: the age of the oldest uncommitted record; 0 without any.
    - `output_ahead`: whether output beyond the committed offsets may have been published.
    """

    metadata: CommitMetadata | None
    offsets: int
    seconds: float
    output_ahead: bool


def lag_of(kafka: KafkaSettings, group: str) -> GroupLag | None:
    """The lag of `group`; None if it has never committed. Raises BrokerUnavailable."""
    doing = f"reading the lag of {group} on"
    with reader(kafka, "its input", doing=doing) as consumer:
        found = committed(kafka, group)
        if not found:
            return None
        ends = {_partition(p): consumer.get_watermark_offsets(p, timeout=CALL_SECONDS)[1] for p in found}
    late = [p for p in found if ends[_partition(p)] > p.offset]
    written: dict[Partition, float] = {}
    for topic in {p.topic for p in late}:
        times = write_times(kafka, topic, {p.partition: p.offset for p in late if p.topic == topic}, doing=doing)
        written |= {(topic, partition): at for partition, at in times.items()}
    metadata = [p.metadata for p in found]
    return GroupLag(
        metadata=CommitMetadata.newest(metadata),
        offsets=sum(ends[_partition(p)] - p.offset for p in late if _partition(p) in written),
        seconds=max(0.0, time.time() - min(written.values())) if written else 0.0,
        output_ahead=any(each is not None and each.output_ahead for each in map(CommitMetadata.decode, metadata)),
    )


def _partition(found: TopicPartition) -> Partition:
    return found.topic, found.partition


def alerts_last_hour(kafka: KafkaSettings, detector: str) -> int | None:
    """Alerts of the last hour; None if the app is no detector. Raises BrokerUnavailable."""
    topic = kafka.topics.detector(detector).alerts
    if (partitions := existing_topics(kafka).get(topic)) is None:
        return None
    return sum(1 for _ in read_since(kafka, topic, partitions, datetime.now(UTC) - timedelta(hours=1)))
