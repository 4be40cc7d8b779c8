"""Times of the week and of the year, as Alertmanager's time intervals, and over midnight.

[time_intervals.office]
weekdays = ["mon-fri"]
times = ["08:00-18:00"]
location = "Europe/Berlin"
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict

_DAY = 24 * 60
_FIRST, _CYCLE = date(2024, 1, 1), 28 * 365 + 7
"""After 28 years each date has had each day of the week."""
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
    start, end = _minutes(text)
    if start == end:
        raise ValueError(f'{text!r} begins when it ends; "00:00-24:00" is the whole day')
    return text


def _day(day: int) -> int:
    if not 1 <= abs(day) <= 31:
        raise ValueError(f"{day} is in no month")
    return day


class TimeInterval(BaseModel):
    """A moment is in it if it fits every list that is not empty. Ranges may wrap: "22:00-06:00", "sat-mon".

    A time of day over midnight belongs to the day on which it begins: with the weekday "fri", "22:00-06:00" lasts from
    Friday 22:00 until Saturday 06:00. `days_of_month` count from 1, or, from the end of the month, from -1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weekdays: tuple[Annotated[str, AfterValidator(_weekday)], ...] = ()
    times: tuple[Annotated[str, AfterValidator(_span)], ...] = ()
    days_of_month: tuple[Annotated[int, AfterValidator(_day)], ...] = ()
    months: tuple[Annotated[str, AfterValidator(_month)], ...] = ()
    location: Annotated[str, AfterValidator(_zone)] = "UTC"

    def __contains__(self, moment: datetime) -> bool:
        here = moment.astimezone(ZoneInfo(self.location))
        today, yesterday = here.date(), here.date() - timedelta(days=1)
        if not self.times:
            return self._on(today)
        minute = here.hour * 60 + here.minute
        return any(
            (start <= minute < (end if start < end else _DAY) and self._on(today))
            or (minute < end < start and self._on(yesterday))
            for start, end in self._times
        )

    @property
    def is_always(self) -> bool:
        """Whether every moment is in it: it has every day, and the whole of it."""
        minutes = {minute for start, end in self._times for minute in _within(start, end)}
        return (not self.times or len(minutes) == _DAY) and all(map(self._on, _days()))

    @property
    def is_never(self) -> bool:
        """Whether no day is in it."""
        return not any(map(self._on, _days()))

    def _on(self, day: date) -> bool:
        days = {day.day, day.day - monthrange(day.year, day.month)[1] - 1}
        return (
            (not self.weekdays or day.weekday() in self._weekdays)
            and (not self.months or day.month - 1 in self._months)
            and (not self.days_of_month or not days.isdisjoint(self.days_of_month))
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


def _days() -> Iterator[date]:
    return (_FIRST + timedelta(days=number) for number in range(_CYCLE))


def _within(start: int, end: int) -> Iterator[int]:
    """The minutes of the day that a span has, on one day or over midnight."""
    return iter(range(start, end)) if start < end else chain(range(start, _DAY), range(end))


def _minutes(text: str) -> tuple[int, int]:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f'{text!r} is no time of day such as "08:00-18:00"')
    hour, minute, to_hour, to_minute = map(int, found.groups())
    return hour * 60 + minute, to_hour * 60 + to_minute
