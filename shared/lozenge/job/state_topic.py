"""Reading a compacted state topic back: the last value of every key."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lozenge.errors import BrokerUnavailable
from lozenge.kafka import KafkaSettings

DEADLINE_SECONDS = 600.0


def read_state(kafka: KafkaSettings, topic: str, partitions: int) -> Iterator[tuple[int, bytes, bytes]]:
    """(partition, key, value) of every live key, committed ones only; raises BrokerUnavailable.

    Call it after fencing the topic's writer: then the end it reads to is final. Holds all values of the
    topic in memory once.
    """
    consumer = Consumer(
        kafka.client(
            group_id=f"{topic}-restore",
            enable_auto_commit=False,
            isolation_level="read_committed",
            enable_partition_eof=True,
            fetch_queue_backoff_ms=10,  # the usual second is spent waiting, again and again, with nothing to do
        )
    )
    latest: list[dict[bytes, bytes]] = [{} for _ in range(partitions)]
    unread = set(range(partitions))
    deadline = time.monotonic() + DEADLINE_SECONDS
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        while unread:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"restoring state from {topic}: not done in {DEADLINE_SECONDS:.0f} s",
                    hint=f"check the broker at {kafka.bootstrap}; the job starts again by itself",
                )
            for message in consumer.consume(10_000, 0.2):
                error, partition = message.error(), message.partition() or 0
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(partition)
                elif error is not None:
                    raise KafkaException(error)
                elif (value := message.value()) is None:
                    latest[partition].pop(message.key() or b"", None)
                else:
                    latest[partition][message.key() or b""] = value
    except KafkaException as error:
        raise BrokerUnavailable(
            f"restoring state from {topic}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
        ) from error
    finally:
        consumer.close()
    for partition, values in enumerate(latest):
        for key, value in values.items():
            yield partition, key, value
