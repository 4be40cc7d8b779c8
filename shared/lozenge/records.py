"""What a detector author's Python code sees: events in, alerts and timers out.

Read `lozenge.fold` for the code that is called with these; rules and aggregates work on columns and
use `lozenge.alert` instead.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Literal

Severity = Literal["info", "low", "medium", "high", "critical"]


class Event:
    """One canonical authorisation, read-only. Columns that a detector joined on are attributes too.

    At run time it is a named tuple of the columns of the detector's DataFrame but `raw`, in their order.
    """

    event_id: str
    event_time: datetime
    card_id: str
    account_id: str | None
    merchant_id: str
    terminal_id: str
    mcc: str
    country: str
    amount: Decimal
    currency: str
    channel: str
    auth_result: str

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def event_type(columns: tuple[str, ...]) -> Any:
    """The named tuple class for events with these columns."""
    return namedtuple("Event", columns)  # the columns are known at run time only


@dataclass(slots=True)
class Alert:
    """What a fold raises. The platform adds ids, detector, release, entity and times.

    `reason` is for a person; `evidence` are event ids, oldest first; `values` are the values that
    decided; `score` runs from 0 to 1. `title` and `severity` default to the detector's declaration.
    """

    reason: str
    score: float = 0.5
    evidence: Sequence[str | None] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    title: str | None = None
    severity: Severity | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timer:
    """Yielded by a fold: wake this key at event time `at` (it fires before the key's next event at or after it)."""

    at: datetime
