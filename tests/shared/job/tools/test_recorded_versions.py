"""Events are evaluated again with the versions of lists that they were processed with, each partition in its order."""

from typing import Any

from lozenge.job.query.poison_search import Ranges
from lozenge.job.tools.recorded_versions import by_version
from lozenge.protocol.coverage import Interval

LISTS = {"blocked": "blocked_cards"}
V1, V2, V3 = ("1-0123456789ab", "5-0123456789ab", "9-0123456789ab")


def of(partition: int, begin: int, end: int, version: str, **more: Any) -> Interval:
    tables = (("blocked", version), ("limits", "0123456789ab"))
    return Interval(partition, begin, end, "r1", "d", 1, tables=tables, **more)


def found(ranges: Ranges, *covered: Interval) -> list[tuple[str | None, Ranges]]:
    return [(part.versions.get("blocked_cards"), dict(part.ranges)) for part in by_version(ranges, covered, LISTS)]


def test_partitions_that_changed_together_are_evaluated_together() -> None:
    covered = [of(0, 0, 10, V1), of(0, 10, 20, V2), of(1, 0, 7, V1), of(1, 7, 30, V2)]
    assert found({0: (5, 20), 1: (0, 25)}, *covered) == [
        (V1, {0: (5, 10), 1: (0, 7)}),
        (V2, {0: (10, 20), 1: (7, 25)}),
    ]


def test_a_partition_that_lacks_a_version_keeps_its_order() -> None:
    covered = [of(0, 0, 10, V1), of(0, 10, 20, V2), of(0, 20, 30, V3), of(1, 0, 30, V3)]
    assert found({0: (0, 30), 1: (0, 30)}, *covered) == [
        (V1, {0: (0, 10)}),
        (V3, {1: (0, 30)}),
        (V2, {0: (10, 20)}),
        (V3, {0: (20, 30)}),
    ]


def test_events_of_no_release_have_the_version_before_them_or_none() -> None:
    assert found({0: (0, 40)}, of(0, 5, 10, V1), of(0, 20, 30, V2)) == [
        (None, {0: (0, 5)}),
        (V1, {0: (5, 20)}),
        (V2, {0: (20, 40)}),
    ]
    assert found({0: (3, 8)}) == [(None, {0: (3, 8)})]
    assert found({}) == []


def test_events_that_were_processed_twice_have_the_later_version_where_that_was() -> None:
    assert found({0: (0, 40)}, of(0, 0, 40, V1), of(0, 10, 20, V2)) == [
        (V1, {0: (0, 10)}),
        (V2, {0: (10, 20)}),
        (V1, {0: (20, 40)}),
    ]


def test_a_table_that_was_a_file_then_has_no_version_of_a_list() -> None:
    assert found({0: (0, 4)}, of(0, 0, 2, "0123456789ab"), of(0, 2, 4, V1)) == [(None, {0: (0, 2)}), (V1, {0: (2, 4)})]
