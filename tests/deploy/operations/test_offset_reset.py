"""The time that `lozenge offsets --at` understands."""

from datetime import UTC, datetime, timedelta

import pytest

from lozenge.errors import UsageError
from lozenge_deploy.operations.offset_reset import moment_of


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-29T02:30", datetime(2026, 3, 29, 2, 30, tzinfo=UTC)),
        ("2026-03-01T12:00+05:30", datetime(2026, 3, 1, 6, 30, tzinfo=UTC)),
        ("2026-03-01 12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("1969-12-31T00:00:00Z", datetime(1969, 12, 31, tzinfo=UTC)),
        (" 2026-03-01 ", datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_understood_in_utc(text: str, utc: datetime) -> None:
    found = moment_of(text)
    assert (found, found.utcoffset()) == (utc, timedelta())


def test_a_duration_is_so_long_ago() -> None:
    before = datetime.now(UTC)
    assert before <= moment_of("2h") + timedelta(hours=2) <= datetime.now(UTC)
    assert before <= moment_of("0s") <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1000000d", "no calendar has that time"),
        (f"{10**30}d", "no calendar has that time"),
        ("0001-01-01T00:00+12:00", "no calendar has that time"),
        ("9999-12-31T23:59:59Z", "it is in the future"),
        ("9999-12-31T23:59:59-12:00", "no calendar has that time"),
        ("-1h", "it is in the future"),
        ("yesterday", "not a time"),
        ("", "not a time"),
        ("2026-13-45", "not a time"),
    ],
)
def test_a_time_that_cannot_be_meant_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        moment_of(text)
