"""The times of events, from what sources write: ISO 8601, parts, forms of their own, an epoch, month to second."""

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.spark.avro import is_readable
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise.transform_result import Made, Row, fault, let, padded

_ISO_LOCAL = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_ISO_OFFSET = r"(Z|[+-][0-9]{2}:?[0-9]{2})"
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of each unit of an epoch."""
_LATEST_MICROS = 253_402_300_800_000_000
"""The year 10000, which no timestamp of Python reaches."""
_EARLIEST = "1980-01-01T00:00:00Z"
"""Earlier is a clock that was never set, a zero, or an epoch in another unit than the mapping says."""
_DAY_MICROS = 86_400 * 1_000_000
_AHEAD_MICROS = 31 * _DAY_MICROS
"""Of a time without a year: that far ahead of its record it is a wrong clock or zone, and not last year's."""


def timestamp(spec: d.Transform, row: Row) -> Made:
    """The columns of one transform that makes a time.

    That of the event is of an age that events have. Others, such as births and due dates, are of the years 1 to 9999.
    """
    made = _read(spec, row)
    return made if row.field is None else replace(made, bound=is_readable)


def _read(spec: d.Transform, row: Row) -> Made:
    match spec:
        case d.TimestampIso():
            return _iso(row.text(spec.path), spec, row.latest)
        case d.TimestampParts():
            return _iso(_composed(spec, row), spec, row.latest)
        case d.TimestampText():
            return _formatted(row.text(spec.path), spec, row.latest)
        case d.TimestampEpoch():
            return _epoch(row.text(spec.path), PER_SECOND[spec.unit], row.latest)
        case d.TimestampMMDDhhmmss():
            return _mmddhhmmss(padded(row.text(spec.path), spec.pad), row.latest)
    raise AssertionError(f"{type(spec).__name__} makes no time")


def spark_format(spec: d.TimestampText) -> str:
    """The pattern as Spark reads it: it parses no day of the week, so that is cut off before."""
    return reduce(lambda found, prefix: found.removeprefix(prefix), ("EEEE, ", "EEE, ", "EEEE ", "EEE "), spec.format)


def has_offset(spec: d.TimestampText) -> bool:
    """Whether such a text has an offset or a zone of its own."""
    quoted = spec.format.split("'")
    return any(symbol in part for part in quoted[::2] for symbol in "XxZVzO")


def _iso(written: Column, spec: d.Local, latest: Column) -> Made:
    """The time of a text of ISO 8601; one without an offset is read where the mapping says, or refused."""
    has_default = bool(spec.offset_default or spec.zone)
    usual = f"^{_ISO_LOCAL}{_ISO_OFFSET}{'?' if has_default else ''}$"
    text = F.when(written.rlike(usual), written).otherwise(_extended(written))
    if not has_default:
        return _time(written, F.when(text.rlike(usual), text.try_cast("timestamp")), latest)

    def local(text: Column) -> Column:
        complete = F.when(_has_offset(text), text).otherwise(F.concat(text, F.lit(spec.offset_default or "Z")))
        return F.when(text.rlike(usual), complete.try_cast("timestamp"))

    if not spec.zone:
        return _time(written, let(text, local), latest)
    zoned = let(text, lambda it: F.when(_has_offset(it), local(it)).otherwise(_in_zone(local(it), spec)))
    return _time(written, zoned, latest, let(text, local))


def _has_offset(text: Column) -> Column:
    return text.rlike(f"{_ISO_OFFSET}$")


def _extended(text: Column) -> Column:
    """Other forms of ISO 8601 in the extended one with seconds: of Java, PostgreSQL, pandas, and the basic form."""
    for pattern, replacement in (
        (r"^(\d{4})(\d{2})(\d{2})[Tt ](\d{2})(\d{2})(\d{2})?(?=[.,Zz+ -]|$)", "$1-$2-$3T$4:$5:$6"),
        (r"^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(?=[.,Zz+-]|$)", "$1-$2-$3T$4:$5:$6"),
        (r"^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}):?(?=[Zz+ \[-]|$)", "$1T$2:00"),
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
    return let(_leap_second(text), _next_day)


def _leap_second(text: Column) -> Column:
    """A leap second as the one before it: no clock of Spark's has it, and the next second is not yet there."""
    return F.regexp_replace(text, F.lit(r"^(.{10}[T ]\d{2}:(?:59|44|29|14)):60(\.\d+)?(?=[Z+-]|$)"), F.lit("$1:59$2"))


def _next_day(text: Column) -> Column:
    """24:00:00, the end of a day, as the beginning of the next."""
    day = F.date_add(F.left(text, F.lit(10)).try_cast("date"), 1).cast("string")
    rest = F.regexp_replace(text, F.lit(r"^.{10}[T ]24:00:00"), F.lit("T00:00:00"))
    return F.when(text.rlike(r"^.{10}[T ]24:00:00(\.0+)?(?=[Z+-]|$)"), F.concat(day, rest)).otherwise(text)


def _composed(spec: d.TimestampParts, row: Row) -> Column:
    """The text of ISO 8601 that the parts make; null where one is absent."""
    date, time = ([row.text(path) for path in paths] for paths in (spec.date, spec.time))
    if len(date) == 3:
        date = [padded(each, digits) for each, digits in zip(date, (4, 2, 2), strict=True)]
    if len(time) > 1:
        *whole, last = time
        time = [*(padded(each, 2) for each in whole), _whole_digits(last) if len(time) == 3 else padded(last, 2)]
    else:
        # a number has lost its leading zero: 620 is 06:20, 62000 is 06:20:00
        short = time[0].rlike("^([0-9]{3}|[0-9]{5})$|^[0-9]:")
        time = [F.when(short, F.concat(F.lit("0"), time[0])).otherwise(time[0])]
    if len(spec.date) == 3 or len(spec.time) > 1:  # the whole text is to be in one form, the extended one
        date = [F.regexp_replace(date[0], F.lit(r"^(\d{4})(\d{2})(\d{2})$"), F.lit("$1-$2-$3")), *date[1:]]
        time = [F.regexp_replace(time[0], F.lit(r"^(\d{2})(\d{2})(?=\d|$)"), F.lit("$1:$2")), *time[1:]]
        time = [F.regexp_replace(time[0], F.lit(r"^(\d{2}:\d{2})(\d{2})"), F.lit("$1:$2")), *time[1:]]
    return F.concat(_between(date, "-"), F.lit("T"), _between(time, ":"))


def _whole_digits(seconds: Column) -> Column:
    return F.regexp_replace(seconds, F.lit(r"^(\d)(?=\D|$)"), F.lit("0$1"))


def _between(texts: list[Column], mark: str) -> Column:
    first, *others = texts
    return F.concat(first, *(each for text in others for each in (F.lit(mark), text)))


def _formatted(text: Column, spec: d.TimestampText, latest: Column) -> Made:
    """The time of a text in a form of the source's own."""
    form = spark_format(spec)
    bare = text if form == spec.format else F.regexp_replace(text, F.lit(r"^\p{L}{2,9}\.?,? "), F.lit(""))
    local = F.try_to_timestamp(bare, F.lit(form))
    if has_offset(spec):
        return _time(text, local, latest)
    if spec.zone is not None:
        return _time(text, _in_zone(local, spec), latest, local)
    moved = F.concat(F.date_format(local, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit(spec.offset_default or "Z"))
    return _time(text, moved.try_cast("timestamp"), latest)


def _in_zone(local: Column, spec: d.Local) -> Column:
    """`local`, a time read as if in UTC, in the zone; null where the zone does not have it.

    The offsets of the day before and of the day after are the only ones that it may have. Where both give a moment that
    the clocks of the zone show so, the hour was there twice; where none does, never.
    """
    zone = spec.zone or "UTC"

    def wanted(moments: Column) -> Column:
        first, second = F.array_min(moments), F.array_max(moments)  # both skip null
        if spec.ambiguous == "refuse":
            return F.when(first == second, first)
        return second if spec.ambiguous == "second" else first

    return let(local, lambda it: let(F.array(_moment(it, -1, zone), _moment(it, 1, zone)), wanted))


def _moment(local: Column, days: int, zone: str) -> Column:
    """The moment of `local` at the offset that the zone has so many days later; null if its clocks do not show it."""

    def offset(near: Column) -> Column:
        return F.try_subtract(F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(near), zone)), near)

    near = F.try_add(F.unix_micros(local), F.lit(days * _DAY_MICROS))
    moment = F.timestamp_micros(F.try_subtract(F.unix_micros(local), let(near, offset)))
    return let(moment, lambda it: F.when(F.from_utc_timestamp(it, zone) == local, it))


def _epoch(text: Column, per_second: int, latest: Column) -> Made:
    """The time of a number of ticks since 1970."""
    number = F.when(text.rlike(r"^[0-9]{1,19}(\.[0-9]{1,9})?$"), text.try_cast("decimal(28,9)"))
    micros = (number * F.lit(1_000_000).cast("decimal(7,0)") / F.lit(per_second).cast("decimal(10,0)")).try_cast(
        "bigint"
    )
    bounded = F.when(micros < _LATEST_MICROS, micros)
    return _time(text, F.timestamp_micros(bounded), latest)


def _mmddhhmmss(text: Column, latest: Column) -> Made:
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


def _time(text: Column, time: Column, latest: Column, local: Column | None = None) -> Made:
    """The time if it is of an age that events have. `local` is what was read without an offset, before its zone."""
    earliest = F.lit(_EARLIEST).cast("timestamp")
    unread = F.lit("format")
    if local is not None:
        unread = F.when(local.isNotNull(), "zone").otherwise(unread)
    kind = let(time, lambda it: F.when(it > latest, "future").when(it < earliest, "range").when(it.isNull(), unread))
    return Made(time, fault(text, kind), lambda value: value.between(earliest, latest))
