"""The times of events, from what sources write: ISO 8601, an epoch, month to second without a year."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge_upstream.normalise.transform_result import Made, fault

_ISO_LOCAL = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
_ISO_OFFSET = r"(Z|[+-][0-9]{2}:?[0-9]{2})"
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of each unit of an epoch."""
_LATEST_MICROS = 253_402_300_800_000_000
"""The year 10000, which no timestamp of Python reaches."""
_EARLIEST = "1980-01-01T00:00:00Z"
"""Earlier is a clock that was never set, a zero, or an epoch in another unit than the mapping says."""
_AHEAD_MICROS = 31 * 86_400 * 1_000_000
"""Of a time without a year: that far ahead of its record it is a wrong clock or zone, and not last year's."""


def timestamp_iso(written: Column, offset_default: str | None, latest: Column) -> Made:
    """The time of a text of ISO 8601; one without an offset is read at `offset_default`, or refused."""
    usual = f"^{_ISO_LOCAL}{_ISO_OFFSET}{'?' if offset_default else ''}$"
    text = F.when(written.rlike(usual), written).otherwise(_extended(written))
    shape, complete = f"^{_ISO_LOCAL}{_ISO_OFFSET}$", text
    if offset_default is not None:
        shape = f"^{_ISO_LOCAL}{_ISO_OFFSET}?$"
        complete = F.when(text.rlike(f"{_ISO_OFFSET}$"), text).otherwise(F.concat(text, F.lit(offset_default)))
    return _time(written, F.when(text.rlike(shape), complete.try_cast("timestamp")), latest)


def _extended(text: Column) -> Column:
    """Other forms of ISO 8601 in the extended one with seconds: of Java, PostgreSQL, pandas, and the basic form."""
    for pattern, replacement in (
        (r"^(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})(\d{2})?(?=[.,Zz+-]|$)", "$1-$2-$3T$4:$5:$6"),
        (r"^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(?=[.,Zz+-]|$)", "$1-$2-$3T$4:$5:$6"),
        (r"^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}):?(?=[Zz+ -]|$)", "$1T$2:00"),
        (r"^(.{10})t", "$1T"),
        (r"(:\d{2}),(\d)", "$1.$2"),
        (r"(\.\d{9})\d+", "$1"),
        (r"\[[A-Za-z0-9_/+-]+\]$", ""),
        (r"([+-]\d{2}:?\d{2}) UTC$", "$1"),
        (r"^(.{10}[T ].{8,18}?) ?(z|UTC|GMT)$", "$1Z"),
        (r"^(.{10}[T ][0-9:.]{8,18}) ([+-]\d{2}:?\d{2})$", "$1$2"),
        (r"^(.{10}[T ][0-9:.]{8,18}) ?([+-]\d{2})$", "$1$2:00"),
    ):
        text = F.regexp_replace(text, F.lit(pattern), F.lit(replacement))
    return text


def timestamp_epoch(text: Column, per_second: int, latest: Column) -> Made:
    """The time of a number of ticks since 1970."""
    number = F.when(text.rlike(r"^[0-9]{1,19}(\.[0-9]{1,9})?$"), text.try_cast("decimal(28,9)"))
    micros = (number * F.lit(1_000_000).cast("decimal(7,0)") / F.lit(per_second).cast("decimal(10,0)")).try_cast(
        "bigint"
    )
    bounded = F.when(micros < _LATEST_MICROS, micros)
    return _time(text, F.timestamp_micros(bounded), latest)


def timestamp_mmddhhmmss(text: Column, latest: Column) -> Made:
    """The time of month to second in UTC, in the latest year that puts it no more than 31 days after the record."""
    # Equal lengths, so the order of the texts is the order of the times within a year.
    last = F.timestamp_micros(F.try_add(F.unix_micros(latest), F.lit(_AHEAD_MICROS)))
    year = F.year(last) - F.when(text > F.date_format(last, "MMddHHmmss"), 1).otherwise(0)
    before = F.when(text.startswith("0229"), _time_of(year - 1, text))  # where this year has no such day
    time = F.coalesce(_time_of(year, text), before)
    return _time(text, F.when(text.rlike("^[0-9]{10}$"), time), latest)


def _time_of(year: Column, text: Column) -> Column:
    parts = [F.substring(text, at, 2) for at in (1, 3, 5, 7, 9)]
    date = F.concat_ws("-", year.cast("string"), *parts[:2])
    return F.concat(date, F.lit("T"), F.concat_ws(":", *parts[2:]), F.lit("Z")).try_cast("timestamp")


def _time(text: Column, time: Column, latest: Column) -> Made:
    earliest = F.lit(_EARLIEST).cast("timestamp")
    kind = F.when(time > latest, "future").when(time < earliest, "range").otherwise("format")
    return Made(time, fault(text, kind), lambda value: value.between(earliest, latest))
