import pytest

from lozenge.sink.commit_plan import MOST_OFFSETS, CommitLimits, next_ranges, row_size, shares

LIMITS = CommitLimits(60.0, 1)


def test_a_commit_is_due_once_it_is_full_or_has_waited() -> None:
    starts, few, many = {0: 5, 1: 0}, {0: 10, 1: 0}, {0: 5_000, 1: 0}
    assert next_ranges(starts, few, LIMITS, 1_000.0, 59.0) == {}
    assert next_ranges(starts, few, LIMITS, 1_000.0, 60.0) == {0: (5, 10)}
    assert next_ranges(starts, many, LIMITS, 1_000.0, 0.0) == {0: (5, 5 + 1_048)}


def test_nothing_is_committed_without_new_offsets() -> None:
    assert next_ranges({0: 5}, {0: 5}, LIMITS, 1_000.0, float("inf")) == {}


def test_a_full_commit_takes_of_every_partition_and_what_one_does_not_need_goes_to_others() -> None:
    assert shares({0: 2, 1: 100, 2: 100}, 20) == {0: 2, 1: 9, 2: 9}
    assert shares({0: 100, 1: 100, 2: 100}, 2) == {0: 1, 1: 1, 2: 0}
    assert sum(shares({0: 50, 1: 3}, 1_000).values()) == 53


@pytest.mark.parametrize(("row_bytes", "offsets"), [(1e9, 1), (0.0, 1_048_576), (1_000.0, 1_048)])
def test_the_size_of_rows_decides_how_many_offsets_fill_a_commit(row_bytes: float, offsets: int) -> None:
    assert LIMITS.offsets(row_bytes) == offsets
    assert CommitLimits(60.0, 512).offsets(0.0) == MOST_OFFSETS


def test_the_size_of_a_row_is_that_of_the_last_commit_with_rows() -> None:
    assert row_size(1_000.0, 10, 500) == 50.0
    assert row_size(1_000.0, 0, 0) == 1_000.0
