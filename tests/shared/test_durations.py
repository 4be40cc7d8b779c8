"""Durations are written as people write them, and parsed as they were."""

from datetime import timedelta

import pytest

from lozenge.durations import duration, text_of


@pytest.mark.parametrize("text", ["0s", "90s", "10m", "36h", "30d", "100ms", "0.25ms", "1234567.891ms", "-10m", "1.5s"])
def test_a_written_duration_parses_to_the_same(text: str) -> None:
    assert duration(text_of(duration(text))) == duration(text)


def test_the_largest_unit_that_fits_is_written() -> None:
    assert [text_of(timedelta(seconds=s)) for s in (0, 0.1, 1, 90, 600, 3600, 86400)] == [
        "0s",
        "100ms",
        "1s",
        "90s",
        "10m",
        "1h",
        "1d",
    ]
    assert text_of(timedelta(minutes=-90)) == "-90m"


@pytest.mark.parametrize("text", ["", "10", "10 minutes", "1w"])
def test_a_text_that_is_no_duration_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        duration(text)
