"""Times: in a standard form, in parts, in a form of the source, as an epoch, or without a year."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from lozenge_upstream.normalise.declarations.raw_fields import JsonPath
from lozenge_upstream.normalise.declarations.transform import FromPath, Transform


class Local(Transform):
    """How a time without an offset is read: at `offset_default`, or in the IANA `zone`; without both it is refused.

    A zone with summer time has an hour twice in autumn: it is the `first` one unless `ambiguous` says otherwise. The
    hour that it lacks in spring is refused: a source that writes it does not keep the time of that zone.
    """

    offset_default: Annotated[str, StringConstraints(pattern=r"^(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)$")] | None = None
    zone: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){1,2}$")] | None = None
    ambiguous: Literal["first", "second", "refuse"] = "first"

    @model_validator(mode="after")
    def _has_one_of_them(self) -> "Local":
        if self.zone and self.offset_default:
            raise ValueError("a time without an offset is read at offset_default or in a zone, not both")
        return self


class TimestampIso(FromPath, Local):
    """ISO 8601 date and time, in the extended or the basic form; seconds may be absent, as Java omits zero."""

    transform: Literal["timestamp_iso"]


class TimestampParts(Local):
    """A time whose date and time of day are in several fields: `date` and `time` name them, from the largest unit.

    Each is a whole text, as `2026-03-01`, or a number for each unit; these get their leading zeros back.
    """

    transform: Literal["timestamp_parts"]
    date: Annotated[tuple[JsonPath, ...], Field(min_length=1, max_length=3)]
    time: Annotated[tuple[JsonPath, ...], Field(min_length=1, max_length=3)]

    @model_validator(mode="after")
    def _is_a_whole_date(self) -> "TimestampParts":
        if len(self.date) == 2:
            raise ValueError("a date is one field, or year, month and day")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.date, *self.time)


class TimestampText(FromPath, Local):
    """A date and time in the `format` that is given, a pattern of Spark's: `dd/MM/yyyy HH:mm:ss`.

    A day of the week before it, as `EEE,` says, is not looked at.
    """

    transform: Literal["timestamp_text"]
    format: Annotated[str, Field(min_length=6, max_length=64)]


class TimestampEpoch(FromPath):
    """The time since 1970 in `unit`, as a JSON number or a string; of seconds also with a fraction."""

    transform: Literal["timestamp_epoch"]
    unit: Literal["s", "ms", "us", "ns"]


class TimestampMMDDhhmmss(FromPath):
    """Month to second in UTC; the year is the latest that puts it no more than 31 days after the raw record.

    `pad` gives a number its leading zero back.
    """

    transform: Literal["timestamp_mmddhhmmss"]
    pad: Literal[10] | None = None
