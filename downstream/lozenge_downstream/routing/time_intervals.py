"""Times of the week and of the year, as Alertmanager's time intervals.


[time_intervals.office]
weekdays = ["mon-fri"]
times = ["08:00-18:00"]
location = "Europe/Berlin"
"""

import re
from collections.abc import Sequence
from datetime import datetime, time
from functools import cached_property
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]|24(?=:00)):([0-5]\d)")


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f'{name!r} is no time zone such as "Europe/Berlin"') from None
    return name


def _weekday(text: str) -> str:
    _indexes([text], WEEKDAYS)
    return text


def _month(text: str) -> str:
    _indexes([text], MONTHS)
    return text


def _span(text: str) -> str:
    _minutes(text)
    return text


def _day(day: int) -> int:
    if not 1 <= abs(day) <= 31:
        raise ValueError(f"{day} is in no month")
    return day


class TimeInterval(BaseModel):
    """A moment is in it if it fits every list that is not empty. Ranges may wrap: "22:00-06:00", "sat-mon".

    `days_of_month` count from 1, or, from the end of the month, from -1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weekdays: tuple[Annotated[str, AfterValidator(_weekday)], ...] = ()
    times: tuple[Annotated[str, AfterValidator(_span)], ...] = ()
    days_of_month: tuple[Annotated[int, AfterValidator(_day)], ...] = ()
    months: tuple[Annotated[str, AfterValidator(_month)], ...] = ()
    location: Annotated[str, AfterValidator(_zone)] = "UTC"

    def __contains__(self, moment: datetime) -> bool:
        here = moment.astimezone(ZoneInfo(self.location))
        days = {here.day, here.day - _days_of(here) - 1}
        return (
            (not self.weekdays or here.weekday() in self._weekdays)
            and (not self.months or here.month - 1 in self._months)
            and (not self.days_of_month or not days.isdisjoint(self.days_of_month))
            and (not self.times or any(_between(span, here.time()) for span in self._times))
        )

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        return _indexes(self.weekdays, WEEKDAYS)

    @cached_property
    def _months(self) -> frozenset[int]:
        return _indexes(self.months, MONTHS)

    @cached_property
    def _times(self) -> tuple[tuple[int, int], ...]:
        return tuple(_minutes(span) for span in self.times)


def _indexes(texts: Sequence[str], names: Sequence[str]) -> frozenset[int]:
    """The indexes of `texts`, each a name or a range of names."""
    found: set[int] = set()
    for text in texts:
        first, _, last = text.partition("-")
        if first not in names or (last or first) not in names:
            raise ValueError(f"{text!r} is none of {', '.join(names)}, nor a range of them")
        start, end = names.index(first), names.index(last or first)
        found.update(n % len(names) for n in range(start, end + 1 if end >= start else end + len(names) + 1))
    return frozenset(found)


def _minutes(text: str) -> tuple[int, int]:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f'{text!r} is no time of day such as "08:00-18:00"')
    hour, minute, to_hour, to_minute = map(int, found.groups())
    return hour * 60 + minute, to_hour * 60 + to_minute


def _between(span: tuple[int, int], clock: time) -> bool:
    minute, (start, end) = clock.hour * 60 + clock.minute, span
    return start <= minute < end if start < end else minute >= start or minute < end


def _days_of(moment: datetime) -> int:
    following = (moment.year + moment.month // 12, moment.month % 12 + 1)
    return (datetime(*following, 1) - datetime(moment.year, moment.month, 1)).days
