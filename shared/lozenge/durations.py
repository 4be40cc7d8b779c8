"""Durations as people write them: "90s", "10m", "1h", "30d"; times as tests write them: "-10m"."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PATTERN = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h|d)")


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
        raise ValueError(f"{text!r} is longer than any time that can be told") from None
    return -value if sign == "-" else value


Duration = Annotated[timedelta, BeforeValidator(duration)]
"""A pydantic field type that takes "10m" as well as a timedelta."""
