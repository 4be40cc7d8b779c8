from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.moments import EARLIEST, LATEST, from_milliseconds, written_at


def test_milliseconds_are_a_time_in_utc() -> None:
    assert from_milliseconds(1_772_366_400_123) == datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    assert written_at(1_772_366_400_123) == "2026-03-01T12:00:00.123+00:00"
    assert written_at(0) == "1970-01-01T00:00:00.000+00:00"


@pytest.mark.parametrize("milliseconds", [1_772_366_400_000_000, 2**63 - 1, 10**30])
def test_a_time_that_no_calendar_shows_is_the_latest_and_named_by_its_number(milliseconds: int) -> None:
    assert from_milliseconds(milliseconds) == LATEST
    assert str(written_at(milliseconds)).startswith(f"{milliseconds} ms, in the year ")


def test_microseconds_that_were_taken_for_milliseconds_are_in_a_year_that_says_so() -> None:
    assert written_at(1_772_366_400_000_000) == "1772366400000000 ms, in the year 58134"


@pytest.mark.parametrize("milliseconds", [-(2**63), -(10**30)])
def test_a_time_before_the_calendar_is_the_earliest(milliseconds: int) -> None:
    assert from_milliseconds(milliseconds) == EARLIEST
    assert str(written_at(milliseconds)).startswith(f"{milliseconds} ms")


@given(st.integers(-(2**63), 2**63 - 1) | st.integers())
def test_a_number_of_any_size_is_a_time_and_is_named(milliseconds: int) -> None:
    assert EARLIEST <= from_milliseconds(milliseconds) <= LATEST
    assert (written_at(milliseconds) is None) == (milliseconds == -1)


def test_minus_one_is_no_time() -> None:
    assert written_at(-1) is None
