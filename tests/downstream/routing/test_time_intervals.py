"""Which moments lie in a time window."""

from datetime import UTC, datetime

import pytest

from lozenge_downstream.routing.time_intervals import TimeInterval


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
    ],
)
def test_a_moment_lies_in_a_window(window: dict[str, object], moment: str, inside: bool) -> None:
    assert (datetime.fromisoformat(moment).replace(tzinfo=UTC) in TimeInterval.model_validate(window)) is inside
