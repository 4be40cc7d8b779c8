"""What the source of a table answers, and how it says that it has no answer."""

from collections.abc import Generator, Sequence
from typing import Any, Protocol

from lozenge.errors import Retryable

Part = Sequence[Sequence[Any]]
"""Some rows as columns: the values of each declared column, in the order of the declaration."""
PART_ROWS = 10_000


class SourceUnavailable(Retryable):
    """The database or the folder of a table does not answer, or cannot be read."""


class UnusableSource(ValueError):
    """What the source has is no version of the table, whatever its rows are; the sentence says why."""


class TableSource(Protocol):
    """Where the rows of a table are. `name` is for people, without logins."""

    @property
    def name(self) -> str: ...

    def version(self) -> str | None:
        """The version that the source has now, if it knows versions; raises SourceUnavailable."""

    def parts(self, columns: Sequence[str]) -> Generator[Part, None, None]:
        """All rows of one version of the source, in parts of at most `PART_ROWS`.

        Raises SourceUnavailable, and UnusableSource for columns that are not there.
        """


def places(columns: Sequence[str], found: Sequence[str]) -> list[int]:
    """Where each declared column is among those of the source, in upper or lower case; raises UnusableSource."""
    at = [_place(name, found) for name in columns]
    if missing := [name for name, place in zip(columns, at, strict=True) if place < 0]:
        raise UnusableSource(f"it has no column {', '.join(missing)}; its columns are {', '.join(found) or 'none'}")
    return at


def _place(name: str, found: Sequence[str]) -> int:
    if name in found:
        return found.index(name)
    alike = [place for place, each in enumerate(found) if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else -1
