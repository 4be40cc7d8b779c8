"""A record is handed over as soon as the producer's queue has space, unless the caller stops first."""

from typing import Any, cast

from confluent_kafka import Producer

from lozenge.contracts.record import Record
from lozenge.kafka.writers import produce

RECORD = Record("topic", 2, b"key", b"value", [("name", b"text")])


class FullProducer:
    """A producer whose queue is full for the first calls."""

    def __init__(self, full: int) -> None:
        self.full, self.taken = full, list[tuple[Any, ...]]()

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, *, headers: list[Any]) -> None:
        if self.full:
            raise BufferError
        self.taken.append((topic, partition, key, value, headers))

    def poll(self, seconds: float) -> None:
        self.full -= 1


def test_it_waits_while_the_queue_is_full() -> None:
    producer = FullProducer(3)
    assert produce(cast(Producer, producer), RECORD)
    assert producer.taken == [tuple(RECORD)]


def test_a_stop_ends_the_wait_without_the_record() -> None:
    producer = FullProducer(3)
    assert not produce(cast(Producer, producer), RECORD, stopped=lambda: producer.full == 1)
    assert producer.taken == []
