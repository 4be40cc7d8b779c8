"""Durations as people write them: "90s", "10m", "1h", "30d"; times as tests write them: "-10m"."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

LONGEST = timedelta(days=36_500)
"""The longest that a setting or an option may be: a moment that lies so far ahead or back is still in the calendar."""
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PATTERN = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class TooLong(ValueError):
    """More days than a timedelta holds."""


def duration(text: str | timedelta) -> timedelta:
    """The timedelta that `text` names; raises ValueError with the accepted form."""
    if isinstance(text, timedelta):
        return text
    match = _PATTERN.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'{text!r} is not a duration such as "90s", "10m", "1h" or "30d"')
    sign, number, unit = match.groups()
    try:
        value = timedelta(**{_UNITS[unit]: float(number)})
    except OverflowError:
        raise TooLong(f"{text!r} is longer than the longest duration") from None
    return -value if sign == "-" else value


def text_of(value: timedelta) -> str:
    """`value` in the largest unit that divides it: what `duration` parses."""
    sign, left = ("-", -value) if value < timedelta() else ("", value)
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(left, timedelta(**{_UNITS[unit]: 1}))
        if count and not rest:
            return f"{sign}{count}{unit}"
    millis = f"{left / timedelta(milliseconds=1):.3f}".rstrip("0").rstrip(".")
    return f"{sign}{millis}ms" if left else "0s"


def in_milliseconds(seconds: float) -> str:
    """As Spark takes an interval."""
    return f"{round(seconds * 1000)} milliseconds"


Duration = Annotated[
    timedelta, BeforeValidator(duration), WithJsonSchema({"type": "string", "pattern": f"^{_PATTERN.pattern}$"})
]
"""A pydantic field type that takes "10m" as well as a timedelta."""

TextDuration = Annotated[Duration, PlainSerializer(text_of, when_used="json")]
"""A `Duration` that is "10m" in JSON too. Not for settings: their digests are in alerts, and cover seconds."""
