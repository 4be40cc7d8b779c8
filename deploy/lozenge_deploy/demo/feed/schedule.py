"""The times of records: rising, in microseconds since 1970, one per record.

The generator itself never reads a clock or sleeps. A history is a pure function of its bounds, and so is a live
schedule; `throttled` yields each of its times when that time has come.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count as count_from
from random import Random
from time import sleep, time_ns

from lozenge_deploy.demo.feed.population import SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = 3600 * SECOND
_BY_HOUR = (2, 1, 1, 1, 1, 2, 5, 9, 11, 10, 10, 12, 14, 12, 10, 10, 12, 15, 16, 14, 11, 8, 6, 4)
_BY_WEEKDAY = (9, 9, 10, 10, 12, 13, 7)  # from Monday
_SLEEP_SECONDS = 0.05  # how late a stop may be noticed


def micros(when: datetime) -> int:
    """`when` as microseconds since 1970, exactly."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def moment(at: int) -> datetime:
    """The UTC time of microseconds since 1970, exactly."""
    return _EPOCH + timedelta(microseconds=at)


def history(random: Random, start: datetime, end: datetime, count: int) -> Iterator[int]:
    """Exactly `count` times in [start, end), dense by day and at weekends, sparse at night."""
    first, last = micros(start), micros(end)
    hours = range(first, last, _HOUR)
    total = sum(_weight(at) for at in hours)
    weight = done = 0
    for at in hours:
        weight += _weight(at)
        due = count * weight // total
        length = min(_HOUR, last - at) / max(due - done, 1)
        for n in range(due - done):
            yield at + int((n + random.random()) * length)
        done = due


def steady(start: datetime, rate: float, seconds: float | None = None) -> Iterator[int]:
    """`rate` times per second from `start`, for `seconds` (None: without end)."""
    first = micros(start)
    for n in count_from() if seconds is None else range(int(rate * seconds)):
        yield first + int(n * SECOND / rate)


def throttled(schedule: Iterable[int], stopped: Callable[[], bool]) -> Iterator[int]:
    """Each time of `schedule` once it has come; ends when `stopped`.

    An open loop: after a stall the missed times follow at once, unchanged.
    """
    for at in schedule:
        while not stopped() and (ahead := at / SECOND - time_ns() / 1e9) > 0:
            sleep(min(ahead, _SLEEP_SECONDS))
        if stopped():
            return
        yield at


def flat_out(seconds: float | None, stopped: Callable[[], bool]) -> Iterator[int]:
    """The present time whenever the caller asks, for `seconds` (None: until `stopped`)."""
    at = time_ns() // 1000
    end = None if seconds is None else at + int(seconds * SECOND)
    while not stopped() and (end is None or at < end):
        yield at
        at = max(at, time_ns() // 1000)


def _weight(at: int) -> int:
    when = moment(at)
    return _BY_HOUR[when.hour] * _BY_WEEKDAY[when.weekday()]
