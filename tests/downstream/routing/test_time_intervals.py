"""Which moments lie in a time window."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge_downstream.routing.time_intervals import WEEKDAYS, TimeInterval

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


CLOCK = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
SPAN = st.tuples(CLOCK, CLOCK | st.just("24:00")).filter(lambda span: span[0] != span[1])
MOMENT = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))


@given(
    spans=st.lists(SPAN, min_size=1, max_size=3),
    weekdays=st.sets(st.sampled_from(WEEKDAYS), min_size=1),
    days=st.sets(st.integers(1, 31)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]),
    moment=MOMENT,
)
def test_a_moment_lies_between_the_ends_of_a_span_that_began_on_a_day_of_the_interval(
    spans: list[tuple[str, str]], weekdays: set[str], days: set[int], zone: str, moment: datetime
) -> None:
    interval = TimeInterval.model_validate(
        {
            "times": ["-".join(span) for span in spans],
            "weekdays": sorted(weekdays),
            "days_of_month": sorted(days),
            "location": zone,
        }
    )
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    inside = False
    for day in (midnight - timedelta(days=1), midnight):
        if WEEKDAYS[day.weekday()] in weekdays and (not days or day.day in days):
            for start, end in spans:
                first, last = (day + timedelta(hours=int(t[:2]), minutes=int(t[3:])) for t in (start, end))
                inside |= first <= local < (last if last > first else last + timedelta(days=1))
    assert (moment in interval) is inside


@given(st.text() | st.from_regex(r"[0-9]{1,2}:[0-9]{2} ?- ?[0-9]{1,2}:[0-9]{2}", fullmatch=True))
def test_any_text_is_a_time_of_day_or_is_refused(text: str) -> None:
    try:
        TimeInterval.model_validate({"times": [text]})
    except ValueError:
        return
    start, end = text.split("-")
    assert start != end
    assert all(0 <= int(clock[:2]) * 60 + int(clock[3:]) <= 1440 for clock in (start, end))
