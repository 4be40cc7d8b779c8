"""What a detector author's Python code sees: events in, alerts and timers out.

Read `lozenge.detector.fold` for the code that is called with these; rules and aggregates work on columns and
use `lozenge.alert` instead.
"""

import re
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any, Literal, get_args

Severity = Literal["info", "low", "medium", "high", "critical"]
MAX_CHARACTERS = 200_000
"""The most text that one alert may hold, so that no broker finds its record too large."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Event:
    """One canonical event, read-only. The fields of its stream, and columns that a detector joined on, are attributes.

    At run time it is a named tuple of the columns of the detector's DataFrame but `raw`, in their order.
    """

    event_id: str
    event_time: datetime

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def event_type(columns: tuple[str, ...]) -> Any:
    """The named tuple class for events with these columns."""
    return namedtuple("Event", columns)  # the columns are known at run time only


@dataclass(frozen=True, slots=True)
class Alert:
    """What a fold raises. The platform adds ids, detector, release, entity and times.

    Raises ValueError with everything about it that could not be written.
    """

    reason: str
    """Text for a person, with the amounts, places and times that decided."""

    score: float = 0.5
    """From 0 (harmless) to 1 (certain)."""

    evidence: Sequence[str | None] = ()
    """Event ids, oldest first."""

    values: Mapping[str, object] = field(default_factory=dict)
    """The values that decided, by name; they become text."""

    title: str | None = None
    """One line for a list; the manifest's unless given."""

    severity: Severity | None = None
    """The manifest's unless given."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """By name, for routes, silences and inhibition."""

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ValueError(f"the alert cannot be written: {'; '.join(problems)}")

    def _problems(self) -> Iterator[str]:
        texts = {"reason": self.reason, **({} if self.title is None else {"title": self.title})}
        texts |= {f"label {name}": text for name, text in self.labels.items()}
        if isinstance(self.evidence, str):
            yield "evidence is one text; write a list of event ids: [event.event_id]"
        else:
            texts |= {f"evidence {n}": text for n, text in enumerate(self.evidence) if text is not None}
        texts |= {f"name {name!r}": name for name in (*self.values, *self.labels)}
        for what, text in texts.items():
            if not isinstance(text, str):
                yield f"{what} is {type(text).__name__}, not text"
            elif _LONE_SURROGATE.search(text):
                yield f"{what} has half of a character (a lone surrogate)"
        for name, value in self.values.items():
            if _LONE_SURROGATE.search(str(value)):
                yield f"value {name} has half of a character (a lone surrogate)"
        if not isinstance(self.score, Real | Decimal) or not 0 <= self.score <= 1:
            yield f"score {self.score!r} does not lie between 0 and 1"
        if self.severity is not None and self.severity not in get_args(Severity):
            yield f"severity {self.severity!r} is none of {', '.join(get_args(Severity))}"
        length = sum(len(str(text)) for text in (*texts.values(), *self.values.values()))
        if length > MAX_CHARACTERS:
            yield f"it holds {length} characters, more than {MAX_CHARACTERS}"


@dataclass(frozen=True, slots=True)
class Timer:
    """Yielded by a fold: wake this key at event time `at` (it fires before the key's next event at or after it)."""

    at: datetime
