"""The receipt of an erasure: for each place what was removed, or when what it has expires by itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from lozenge.errors import LozengeError, first_line


class Outcome(StrEnum):
    """What became of a place. One that EXPIRES loses its records by itself; one that is NOT_DONE may have some."""

    REMOVED = "removed"
    WOULD_REMOVE = "would remove"
    NOTHING = "nothing found"
    EXPIRES = "expires by itself"
    NOT_DONE = "not done"


@dataclass(frozen=True)
class Line:
    """One place: how many records, `what` was done with them, and when (UTC) the last of it is gone at the latest."""

    place: str
    outcome: Outcome
    records: int = 0
    what: str = ""
    until: datetime | None = None

    def row(self) -> dict[str, Any]:
        """For people, and as JSON."""
        return {
            "place": self.place,
            "outcome": self.outcome.value,
            "records": self.records,
            "what": self.what or None,
            "until": self.until.isoformat(timespec="seconds") if self.until else None,
        }


def found(place: str, records: int, what: str, *, dry_run: bool, until: datetime | None = None) -> Line:
    """The line of a place in which so many records were looked for and removed."""
    if not records:
        return Line(place, Outcome.NOTHING)
    return Line(place, Outcome.WOULD_REMOVE if dry_run else Outcome.REMOVED, records, what, None if dry_run else until)


def not_done(place: str, error: Exception) -> Line:
    """The line of a place that could not be erased, or not wholly."""
    message = error.message if isinstance(error, LozengeError) else f"{type(error).__name__}: {first_line(error)}"
    hint = f" ({error.hint})" if isinstance(error, LozengeError) and error.hint else ""
    return Line(place, Outcome.NOT_DONE, what=" ".join(f"{message}{hint}".split()))


def unfinished(lines: Iterable[Line]) -> list[Line]:
    """The places that may still have records which do not expire."""
    return [line for line in lines if line.outcome is Outcome.NOT_DONE]
