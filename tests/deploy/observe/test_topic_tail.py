"""The order in which the latest records of several partitions are shown."""

from collections.abc import Iterator
from typing import NamedTuple, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from lozenge.kafka import topic_reader
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.observe import topic_tail
from lozenge_deploy.observe.topic_tail import in_order, latest

NOW = 1_772_366_400
MICROSECONDS = NOW * 1_000_000


class Written(NamedTuple):
    """As much of a message as its place among others depends on."""

    at_partition: int
    at_offset: int
    milliseconds: int

    def partition(self) -> int:
        return self.at_partition

    def offset(self) -> int:
        return self.at_offset

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, self.milliseconds

    def key(self) -> None:
        return None

    def value(self) -> None:
        return None

    def headers(self) -> None:
        return None


def offsets(*times_of_partitions: list[int]) -> list[tuple[int, int]]:
    """Partition and offset of records with these timestamps by partition, as they are shown."""
    found = [Written(p, n, at) for p, times in enumerate(times_of_partitions) for n, at in enumerate(times)]
    return [(m.at_partition, m.at_offset) for m in cast(list[Written], in_order(cast(list[Message], found), NOW))]


def millis(second: int) -> int:
    return (NOW - 100 + second) * 1000


def test_partitions_are_merged_by_the_time_of_their_records() -> None:
    assert offsets([millis(1), millis(3)], [millis(2), millis(4)]) == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("wrong", [MICROSECONDS, 2**62, 0, -1, NOW], ids=["micros", "huge", "0", "none", "seconds"])
def test_a_record_with_a_wrong_time_stays_between_its_neighbours(wrong: int) -> None:
    assert offsets([millis(1), wrong, millis(4)], [millis(2), millis(3), millis(5)])[-1] == (1, 2)
    found = offsets([millis(1), wrong, millis(4)], [millis(2)])
    assert [offset for partition, offset in found if partition == 0] == [0, 1, 2]


def test_the_newest_record_of_a_partition_is_among_the_newest_although_its_time_is_wrong() -> None:
    assert offsets([millis(1), MICROSECONDS], [millis(2), millis(3)])[-1] == (0, 1)
    assert offsets([millis(4), NOW], [millis(2), millis(3)])[-1] == (0, 1)


def test_the_newest_records_are_looked_for_near_the_end_since_records_may_be_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end, was_read = 1_000_000, []

    def read(_kafka: object, _topic: str, starts: dict[int, int]) -> Iterator[Written]:
        for offset in range(starts[0], end):
            was_read.append(offset)
            if offset % 100 == 7:  # the others are markers of transactions
                yield Written(0, offset, millis(1))

    monkeypatch.setattr(topic_reader, "read", read)
    monkeypatch.setattr(topic_tail, "partitions", lambda _: {"t": 1})
    monkeypatch.setattr(topic_tail, "settle_ids", lambda *_: [])
    monkeypatch.setattr(topic_tail, "bounds", lambda *_: {0: (0, end)})
    assert [row["offset"] for row in latest(KafkaSettings(), "t", 2)] == [end - 193, end - 93]
    assert len(was_read) < 1_000
