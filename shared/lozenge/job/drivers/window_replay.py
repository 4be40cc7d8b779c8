"""Where an aggregate without its checkpoint starts, so that windows which were open are counted completely.

The committed offsets say which events were processed, but not the counts. Reading the last `lateness` and `window`
again restores the counts; alerts that were emitted before are skipped by their ids.
"""

import time
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import reader

CALL_SECONDS = 15.0


def rewound(kafka: KafkaSettings, topic: str, offsets: Mapping[int, int], span: timedelta) -> dict[int, int]:
    """By partition, the offset of the first record written at most `span` before the last processed one.

    As long as events are written soon after they happen, no event of an open window is earlier. Event time is not used
    because it would read everything again where history is replayed. Raises BrokerUnavailable.
    """
    with reader(kafka, topic, doing="looking for the events of open windows in") as consumer:
        return {p: _rewound(consumer, TopicPartition(topic, p, offset), span) for p, offset in offsets.items()}


def _rewound(consumer: Consumer, committed: TopicPartition, span: timedelta) -> int:
    offset: int = committed.offset
    low, _ = consumer.get_watermark_offsets(committed, timeout=CALL_SECONDS)
    if offset <= low or (processed := _written_at(consumer, committed.topic, committed.partition, offset - 1)) is None:
        return offset
    earliest = TopicPartition(committed.topic, committed.partition, processed - int(span.total_seconds() * 1000))
    (found,) = consumer.offsets_for_times([earliest], timeout=CALL_SECONDS)
    return found.offset if 0 <= found.offset < offset else offset


def _written_at(consumer: Consumer, topic: str, partition: int, offset: int) -> int | None:
    """When the record at `offset`, or the next one that exists, was written, in milliseconds; None at the end."""
    consumer.assign([TopicPartition(topic, partition, offset)])
    deadline = time.monotonic() + CALL_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None:
            continue
        if (error := message.error()) is None:
            written: int = message.timestamp()[1]
            return written
        if error.code() == KafkaError._PARTITION_EOF:
            return None
        raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
