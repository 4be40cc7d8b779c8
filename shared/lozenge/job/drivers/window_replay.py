"""Where an aggregate without its checkpoint starts, so that windows which were open are counted completely.

The committed offsets say which events were processed, but not the counts. Reading the last `lateness` and `window`
again restores the counts; alerts that were emitted before are skipped by their ids.
"""

from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import reader, times_before

CALL_SECONDS = 15.0


def rewound(kafka: KafkaSettings, topic: str, offsets: Mapping[int, int], span: timedelta) -> dict[int, int]:
    """By partition, the offset of the first record written at most `span` before the last processed one.

    As long as events are written soon after they happen, no event of an open window is earlier. Event time is not used
    because it would read everything again where history is replayed. Raises BrokerUnavailable.
    """
    doing = "looking for the events of open windows in"
    processed = times_before(kafka, topic, {p: offset for p, offset in offsets.items() if offset > 0}, doing=doing)
    earliest = [TopicPartition(topic, p, round((at - span.total_seconds()) * 1000)) for p, at in processed.items()]
    with reader(kafka, topic, doing=doing) as consumer:
        found = consumer.offsets_for_times(earliest, timeout=CALL_SECONDS) if earliest else []
    begins = {p.partition: p.offset for p in found if p.offset >= 0}
    return {p: min(offset, begins.get(p, offset)) for p, offset in offsets.items()}
