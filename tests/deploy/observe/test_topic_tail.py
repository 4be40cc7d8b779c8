"""The order in which the latest records of several partitions are shown."""

from typing import NamedTuple, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from lozenge_deploy.observe.topic_tail import in_order

NOW = 1_772_366_400
MICROSECONDS = NOW * 1_000_000


class Written(NamedTuple):
    """As much of a message as its order depends on."""

    at_partition: int
    at_offset: int
    milliseconds: int

    def partition(self) -> int:
        return self.at_partition

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, self.milliseconds


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
