"""Reading a compacted state topic back: the last value of every key."""

from collections.abc import Collection, Iterator

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read

Stored = tuple[int, bytes, bytes]
"""Partition, key and value of a live key."""


def read_state(kafka: KafkaSettings, topic: str, partitions: Collection[int]) -> Iterator[Stored]:
    """Every live key in `partitions`, committed ones only; raises BrokerUnavailable.

    Call it after fencing the topic's writer: then the end it reads to is final. Holds all values of the
    topic in memory once.
    """
    latest: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
    for message in read(kafka, topic, dict.fromkeys(partitions, 0), doing="restoring state from"):
        values, key = latest[message.partition() or 0], message.key() or b""
        if (value := message.value()) is None:
            values.pop(key, None)
        else:
            values[key] = value
    for partition, values in latest.items():
        for key, value in values.items():
            yield partition, key, value
