"""Whether the values of a field are times, and how a mapping reads them."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

_ISO = re.compile(
    r"\d{4}-?\d{2}-?\d{2}[Tt ]\d{2}:?\d{2}(:?\d{2}([.,]\d+)?)?"
    r"(?P<offset> ?([Zz]|UTC|[+-]\d{2}(:?\d{2})?)(\[[\w/+-]+\])?)?",
    re.ASCII,
)
_FROM, _UNTIL = 946_684_800, 4_102_444_800  # the years 2000 to 2099
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_NAMES = r"(^|_)(at|ts|time|timestamp|datetime|date|when|epoch)(_?(s|ms|us|ns|utc|millis|seconds))?$"


class TimeForm(NamedTuple):
    """How a mapping reads the times of a field, but for the path, and the words for it.

    `is_local`: they have no offset.
    """

    transform: dict[str, Any]
    words: str
    is_local: bool = False


def time_form(values: Sequence[Any]) -> TimeForm | None:
    """The form of the times that all of `values` are; None if one is none."""
    if not values:
        return None
    if all(isinstance(value, str) for value in values):
        found = [_ISO.fullmatch(value.strip(" ")) for value in values]
        if not all(found):
            return None
        is_local = not all(each["offset"] for each in found if each)
        words = "ISO 8601 without an offset" if is_local else "ISO 8601"
        return TimeForm({"transform": "timestamp_iso"}, words, is_local)
    if all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in values):
        for unit, per_second in _PER_SECOND.items():
            if all(_FROM <= value / per_second < _UNTIL for value in values):
                return TimeForm({"transform": "timestamp_epoch", "unit": unit}, f"{_WORDS[unit]} since 1970")
    return None


def is_time_name(name: str) -> bool:
    """Whether a field of this name usually has a time, so that a number in it may be an epoch."""
    return bool(re.search(_NAMES, name))
