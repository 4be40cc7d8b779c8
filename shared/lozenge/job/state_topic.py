"""Reading a compacted state topic back: the last value of every key."""

from collections.abc import Iterator

from lozenge.kafka import KafkaSettings
from lozenge.reading import read


def read_state(kafka: KafkaSettings, topic: str, partitions: int) -> Iterator[tuple[int, bytes, bytes]]:
    """(partition, key, value) of every live key, committed ones only; raises BrokerUnavailable.

    Call it after fencing the topic's writer: then the end it reads to is final. Holds all values of the
    topic in memory once.
    """
    latest: list[dict[bytes, bytes]] = [{} for _ in range(partitions)]
    for message in read(kafka, topic, dict.fromkeys(range(partitions), 0), doing="restoring state from"):
        values, key = latest[message.partition() or 0], message.key() or b""
        if (value := message.value()) is None:
            values.pop(key, None)
        else:
            values[key] = value
    for partition, values in enumerate(latest):
        for key, value in values.items():
            yield partition, key, value
