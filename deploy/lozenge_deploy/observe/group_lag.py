"""The lag of a consumer group, in offsets and in seconds."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from confluent_kafka import TopicPartition

from lozenge.contracts.avro import Codec
from lozenge.contracts.record import Partition
from lozenge.kafka.group_offsets import committed
from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions as existing_topics
from lozenge.kafka.topic_reader import CALL_SECONDS, read_since, reader, write_times
from lozenge.protocol.commit_metadata import CommitMetadata

HELD_SECONDS = 60.0
"""How long a transaction may be open before it is a problem. Upstream's and jobs' end within seconds."""
FIRST_CLOCK = 946_684_800.0
"""The year 2000: an earlier Kafka timestamp says nothing about when its record was written."""


@dataclass(frozen=True)
class GroupLag:
    """The lag of a group.

    - `metadata`: of the newest commit.
    - `offsets`: between the committed offsets and the ends of the partitions, also those of open transactions and of
      records that were deleted before they were processed.
    - `seconds`: the age of the oldest record that can be read and is not committed; 0 without any.
    - `lost`: records that were deleted before they were processed.
    - `blocked`: offsets that wait behind a transaction that was left open, by topic and partition.
    - `output_ahead`: whether output beyond the committed offsets may have been published.
    """

    metadata: CommitMetadata | None
    offsets: int
    seconds: float
    output_ahead: bool
    lost: int = 0
    blocked: Mapping[Partition, int] = field(default_factory=dict)

    @property
    def problem(self) -> str | None:
        """What keeps the group from processing its input; None if nothing does."""
        if self.lost:
            return f"{self.lost} records were deleted before they were processed"
        if self.blocked:
            where = ", ".join(f"{topic} {partition}" for topic, partition in sorted(self.blocked)[:3])
            return f"{sum(self.blocked.values())} offsets wait behind an open transaction in {where}"
        return None


def lag_of(kafka: KafkaSettings, group: str, held_seconds: float = HELD_SECONDS) -> GroupLag | None:
    """The lag of `group`; None if it has never committed. Raises BrokerUnavailable.

    A transaction whose first record was written `held_seconds` ago was left open.
    """
    doing = f"reading the lag of {group} on"
    found = committed(kafka, group)
    if not found:
        return None
    # these ends first: what is written in between would look as if it were in an open transaction
    written_ends = _watermarks(kafka, found, "read_uncommitted", doing)
    bounds = _watermarks(kafka, found, "read_committed", doing)
    ends = {partition: end for partition, (_, end) in bounds.items()}
    late = [p for p in found if ends[_partition(p)] > p.offset]
    written: dict[Partition, float] = {}
    for topic in {p.topic for p in late}:
        times = write_times(kafka, topic, {p.partition: p.offset for p in late if p.topic == topic}, doing=doing)
        written |= {(topic, partition): at for partition, at in times.items()}
    metadata = [p.metadata for p in found]
    open_offsets = {p: written_ends[p][1] - end for p, end in ends.items() if written_ends[p][1] > end}
    lost = {_partition(p): max(0, bounds[_partition(p)][0] - p.offset) for p in found}
    return GroupLag(
        metadata=CommitMetadata.newest(metadata),
        offsets=sum(ends[_partition(p)] - p.offset for p in late if _partition(p) in written or lost[_partition(p)])
        + sum(open_offsets.values()),
        lost=sum(lost.values()),
        blocked=_left_open(kafka, open_offsets, ends, time.time() - held_seconds),
        seconds=oldest_age(written.values(), time.time()),
        output_ahead=any(each is not None and each.output_ahead for each in map(CommitMetadata.decode, metadata)),
    )


def oldest_age(written: Iterable[float], now: float) -> float:
    """The seconds since the oldest of the Unix times `written`; those of producers without a clock do not count."""
    return max(0.0, now - min((at for at in written if at >= FIRST_CLOCK), default=now))


def _watermarks(
    kafka: KafkaSettings, partitions: Iterable[TopicPartition], isolation: str, doing: str
) -> dict[Partition, tuple[int, int]]:
    """The earliest offset and the end of each partition, as readers of this isolation see them."""
    with reader(kafka, "its input", doing=doing, isolation=isolation) as consumer:
        return {_partition(p): consumer.get_watermark_offsets(p, timeout=CALL_SECONDS) for p in partitions}


def _left_open(
    kafka: KafkaSettings, open_offsets: Mapping[Partition, int], ends: Mapping[Partition, int], before: float
) -> dict[Partition, int]:
    """Those of `open_offsets` whose transaction has its first record from `before` this Unix time."""
    began: dict[Partition, float] = {}
    for topic in {topic for topic, _ in open_offsets}:
        offsets = {partition: ends[topic, partition] for name, partition in open_offsets if name == topic}
        times = write_times(kafka, topic, offsets, doing="reading open transactions of", isolation="read_uncommitted")
        began |= {(topic, partition): at for partition, at in times.items()}
    return {partition: count for partition, count in open_offsets.items() if began.get(partition, before + 1) <= before}


def _partition(found: TopicPartition) -> Partition:
    return found.topic, found.partition


def alerts_last_hour(kafka: KafkaSettings, detector: str) -> int | None:
    """Alerts of the last hour; None if the app is no detector. Raises BrokerUnavailable."""
    topic = kafka.topics.detector(detector).alerts
    if (partitions := existing_topics(kafka).get(topic)) is None:
        return None
    codec = Codec.of("alert")
    records = read_since(kafka, topic, partitions, datetime.now(UTC) - timedelta(hours=1))
    return sum(row_of(record, lambda _, value: codec.decode(value)) is not None for record in records)
