"""Where an aggregate without its checkpoint begins, so that the windows that were open are counted whole.

Its committed offsets say which events were decided, not what had been counted. Reading the last
`lateness` and `window` before them again restores the counts; crossings told before are known by id.
"""

import time
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import reader

CALL_SECONDS = 15.0


def rewound(kafka: KafkaSettings, topic: str, offsets: Mapping[int, int], span: timedelta) -> dict[int, int]:
    """By partition, the offset of the first record that was written at most `span` before the last one decided.

    While events are written soon after they happen, none that an open window counts lies before. Going by
    the events' own time would read everything again where history is replayed. Raises BrokerUnavailable.
    """
    with reader(kafka, topic, doing="looking for the events of open windows in") as consumer:
        return {p: _rewound(consumer, TopicPartition(topic, p, offset), span) for p, offset in offsets.items()}


def _rewound(consumer: Consumer, place: TopicPartition, span: timedelta) -> int:
    offset: int = place.offset
    low, _ = consumer.get_watermark_offsets(place, timeout=CALL_SECONDS)
    if offset <= low or (decided := _written_at(consumer, place.topic, place.partition, offset - 1)) is None:
        return offset
    earliest = TopicPartition(place.topic, place.partition, decided - int(span.total_seconds() * 1000))
    (found,) = consumer.offsets_for_times([earliest], timeout=CALL_SECONDS)
    return found.offset if 0 <= found.offset < offset else offset


def _written_at(consumer: Consumer, topic: str, partition: int, offset: int) -> int | None:
    """When the record at `offset`, or the next one there is, was written, in milliseconds; None at the end."""
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
