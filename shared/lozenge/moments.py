"""Times out of numbers that anybody may have written: of Kafka records, of JSON."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_MILLISECONDS_OF_A_YEAR = 31_556_952_000


def from_milliseconds(milliseconds: int) -> datetime:
    """The time in UTC of milliseconds since 1970; before year 1 and after year 9999 it is the nearest time in them."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return LATEST if milliseconds > 0 else EARLIEST


def written_at(milliseconds: int) -> str | None:
    """A record's Kafka timestamp for people: ISO 8601 in UTC; None for -1, which means that it has none.

    A time that no calendar shows is named by its number and year: most likely it was written in another unit.
    """
    if milliseconds == -1:
        return None
    moment = from_milliseconds(milliseconds)
    if moment in (EARLIEST, LATEST):
        return f"{milliseconds} ms, in the year {1970 + milliseconds // _MILLISECONDS_OF_A_YEAR}"
    return moment.isoformat(timespec="milliseconds")
