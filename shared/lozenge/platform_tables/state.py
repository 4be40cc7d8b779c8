"""What a look at the source of a table has found."""

from enum import StrEnum


class TableState(StrEnum):
    """A good version, one that is refused, or no answer. In the last two cases the last good version stays."""

    GOOD = "good"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
