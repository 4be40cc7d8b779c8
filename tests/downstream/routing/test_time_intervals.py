"""Which moments lie in a time window."""

from datetime import UTC, datetime

import pytest

from lozenge_downstream.routing.time_intervals import TimeInterval

NIGHT = {"weekdays": ["fri"], "times": ["22:00-06:00"], "location": "Europe/Berlin"}
HOUR_TWO = {"times": ["02:00-03:00"], "location": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [
        ({"weekdays": ["mon-fri"], "times": ["08:00-18:00"]}, "2026-03-02T08:00", True),
        ({"weekdays": ["mon-fri"], "times": ["08:00-18:00"]}, "2026-03-02T18:00", False),
        ({"weekdays": ["sat-mon"]}, "2026-03-01T12:00", True),
        ({"weekdays": ["sat-mon"]}, "2026-03-03T12:00", False),
        ({"times": ["22:00-06:00"]}, "2026-03-01T05:59", True),
        ({"times": ["22:00-24:00"]}, "2026-03-01T23:59", True),
        ({"times": ["08:00-18:00"], "location": "Europe/Berlin"}, "2026-03-01T07:30", True),
        ({"days_of_month": [-1]}, "2026-02-28T12:00", True),
        ({"days_of_month": [1, 15]}, "2026-12-15T12:00", True),
        ({"days_of_month": [-1]}, "2026-12-30T12:00", False),
        ({"months": ["nov-jan"]}, "2026-12-01T12:00", True),
        ({}, "2026-12-01T12:00", True),
        (NIGHT, "2026-03-06T00:00", False),  # Friday, 01:00 in Berlin
        (NIGHT, "2026-03-06T20:59", False),
        (NIGHT, "2026-03-06T21:00", True),
        (NIGHT, "2026-03-07T00:00", True),  # Saturday, 01:00 in Berlin
        (NIGHT, "2026-03-07T04:59", True),
        (NIGHT, "2026-03-07T05:00", False),
        (NIGHT, "2026-03-07T22:00", False),
        ({"days_of_month": [-1], "times": ["23:00-01:00"]}, "2026-04-01T00:30", True),
        ({"days_of_month": [1], "times": ["23:00-01:00"]}, "2026-04-01T00:30", False),
        ({"months": ["dec"], "times": ["23:00-01:00"]}, "2027-01-01T00:59", True),
        ({"times": ["00:00-24:00"]}, "2026-03-01T23:59", True),
        ({"weekdays": ["fri"], "times": ["22:00-00:00"]}, "2026-03-06T23:59", True),
        ({"weekdays": ["fri"], "times": ["22:00-00:00"]}, "2026-03-07T00:00", False),
        (HOUR_TWO, "2026-03-29T00:59", False),  # the skipped hour: 03:00 follows 01:59
        (HOUR_TWO, "2026-03-29T01:00", False),
        (HOUR_TWO, "2026-10-25T00:30", True),  # the hour that comes twice
        (HOUR_TWO, "2026-10-25T01:30", True),
    ],
)
def test_a_moment_lies_in_a_window(window: dict[str, object], moment: str, inside: bool) -> None:
    assert (datetime.fromisoformat(moment).replace(tzinfo=UTC) in TimeInterval.model_validate(window)) is inside


@pytest.mark.parametrize("span", ["08:00-08:00", "00:00-00:00", "24:00-24:00", "22:00-24:01", "22:00"])
def test_a_time_of_day_that_is_none_or_begins_when_it_ends_is_refused(span: str) -> None:
    with pytest.raises(ValueError, match=r"begins when it ends|no time of day"):
        TimeInterval.model_validate({"times": [span]})
