"""What each transform of a mapping does, as pure column functions.

Every function returns `Made`: the value, null where the raw text cannot be accepted, and the kind of
fault, which is looked at only then. So a good record costs one null check per field, and no text
whatsoever can raise: under Spark's ANSI mode only `try_` functions and guarded ones are used here.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts.card_numbers import has_card_number_column
from lozenge.contracts.money import ALPHABETIC as CURRENCY_CODES
from lozenge.contracts.money import MINOR_DIGITS
from lozenge_upstream.normalise import mapping_transforms as m
from lozenge_upstream.normalise.countries import ALPHA2, ALPHA3
from lozenge_upstream.normalise.countries import ALPHABETIC as COUNTRY_CODES

_INTEGER_DIGITS = 14  # what decimal(18,4) leaves before the point
# No identifier, code or amount begins with a bracket or reads true or false: such a text is JSON of another type.
_OTHER_TYPE = r"^[\[{]|^(true|false)$"
_TEXT = r"(?!true$|false$)[^\[{\p{Cntrl}][^\p{Cntrl}]{0,127}"
_ISO_LOCAL = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
_ISO_OFFSET = r"(Z|[+-][0-9]{2}:?[0-9]{2})"
_SHA256_BLOCK = 64
_SEPARATOR = "\x1f"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LATEST_MICROS = 253_402_300_800_000_000
"""The year 10000, which no timestamp of Python reaches."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a transform may look at: nothing that is not in the raw record or the settings."""

    text: Callable[[str], Column]
    """The trimmed text of a raw field; null where it is absent, empty where it is blank."""
    latest: Column
    """The latest time that this record may report."""
    minor_digits: Column
    """Decimals that the event's currency has; null where the currency is unknown."""
    token_key: bytes


@dataclass(frozen=True, slots=True)
class Made:
    """A canonical value and, where it is refused, the kind of fault (null: another field has the reason).

    It is refused where it is null or `bound`, asked of the finished value, says false.
    """

    value: Column
    fault: Column
    bound: Callable[[Column], Column] | None = None

    def accepts(self, value: Column) -> Column:
        """Whether the finished value holds; never null."""
        good = value.isNotNull()
        return good & self.bound(value) if self.bound else good


def make(spec: m.Transform, row: Row) -> Made:
    """The columns of one transform."""
    match spec:
        case m.Constant():
            return Made(F.lit(spec.value), F.lit(None).cast("string"))
        case m.Text():
            return _text(_padded(row.text(spec.path), spec.pad), spec.pattern)
        case m.Join():
            return _join(spec, row)
        case m.Token():
            return _token(row.text(spec.path), row.token_key)
        case m.Decimal():
            return _signed(_decimal(row.text(spec.path), row.minor_digits), spec, row)
        case m.MinorUnits():
            return _signed(_minor_units(row.text(spec.path), row), spec, row)
        case m.TimestampIso():
            return _timestamp_iso(row.text(spec.path), spec.offset_default, row.latest)
        case m.TimestampEpoch():
            return _timestamp_epoch(row.text(spec.path), _PER_SECOND[spec.unit], row.latest)
        case m.TimestampMMDDhhmmss():
            return _timestamp_mmddhhmmss(row.text(spec.path), row.latest)
        case m.Currency(code="alpha"):
            return _alphabetic(row.text(spec.path), set(MINOR_DIGITS))
        case m.Currency():
            return _numeric(row.text(spec.path), CURRENCY_CODES)
        case m.Country(code="alpha"):
            return _alphabetic(row.text(spec.path), ALPHA2)
        case m.Country(code="alpha3"):
            return _lookup(row.text(spec.path), ALPHA3, None)
        case m.Country():
            return _numeric(row.text(spec.path), COUNTRY_CODES)
        case m.Lookup():
            return _lookup(row.text(spec.path), spec.table, spec.default, spec.blank)
        case m.First():
            return _first(spec, row)
    raise AssertionError(f"{type(spec).__name__} is not one of the transforms")


def without_card_numbers(made: Made) -> Made:
    """The same text, refused where it holds a card number."""
    fault = F.when(made.value.isNotNull(), "pan").otherwise(made.fault)
    return Made(made.value, fault, lambda value: ~has_card_number_column(value))


def token(card: Column, key: bytes) -> Column:
    """`card_` and 24 hex digits of HMAC-SHA256(key, card), the card as ASCII digits."""
    block = key if len(key) <= _SHA256_BLOCK else hashlib.sha256(key).digest()
    block = block.ljust(_SHA256_BLOCK, b"\0")
    inner, outer = (F.lit(bytearray(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    message = F.unhex(F.sha2(F.concat(inner, card.cast("binary")), 256))
    return F.concat(F.lit("card_"), F.left(F.sha2(F.concat(outer, message), 256), F.lit(24)))


def _fault(text: Column, otherwise: Column | str) -> Column:
    kind = F.lit(otherwise) if isinstance(otherwise, str) else otherwise
    return F.when(text.rlike(_OTHER_TYPE), "type").otherwise(kind)


def _text(text: Column, pattern: str | None) -> Made:
    whole = f"^(?={_TEXT}$)(?:{pattern})$" if pattern else f"^{_TEXT}$"
    return Made(F.when(text.rlike(whole), text), _fault(text, "format"))


def _token(text: Column, key: bytes) -> Made:
    card = F.translate(text, " -", "")
    return Made(F.when(card.rlike("^[0-9]{12,19}$"), token(card, key)), _fault(text, "format"))


def _decimal(text: Column, digits: Column) -> Made:
    fits = _by_digits(digits, lambda n: text.rlike(_major(n)))
    kind = (
        F.when(~text.rlike(r"^[+-]?[0-9]+(\.[0-9]+)?$"), "format")
        .when(~text.rlike(rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}(\.|$)"), "digits")
        .when(digits.isNotNull(), "decimals")
    )
    return Made(F.when(fits, text.try_cast("decimal(18,4)")), _fault(text, kind))


def _by_digits(digits: Column, branch: Callable[[int], Column]) -> Column:
    found = F.lit(None)
    for count in sorted(set(MINOR_DIGITS.values())):
        found = F.when(digits == count, branch(count)).otherwise(found)
    return found


def _major(decimals: int) -> str:
    return rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}(\.(?=[0-9])[0-9]{{0,{decimals}}}0*)?$"


def _signed(amount: Made, spec: m.Decimal | m.MinorUnits, row: Row) -> Made:
    """A record that is neither a payment nor a reversal has another reason, see `normaliser`."""
    direction, payment = F.lit(-1 if spec.invert else 1), -1 if spec.invert else 1
    if spec.sign is not None:
        kind = row.text(spec.sign.path)
        direction = F.when(kind.isin(*spec.sign.plus), payment).when(kind.isin(*spec.sign.minus), -payment)
    return replace(amount, value=(amount.value * direction).try_cast("decimal(18,4)"))


def _minor_units(text: Column, row: Row) -> Made:
    unit = _by_digits(row.minor_digits, lambda n: F.lit(f"1e-{n}").cast("decimal(5,4)"))
    whole = rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}$"
    units = F.when(text.rlike(whole), text.try_cast("decimal(18,0)"))
    fault = F.when(~text.rlike(r"^[+-]?[0-9]+$"), "format").when(~text.rlike(whole), "digits")
    return Made((units * unit).try_cast("decimal(18,4)"), _fault(text, fault))


def _timestamp_iso(written: Column, offset_default: str | None, latest: Column) -> Made:
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
        (r"^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}):?(?=[Zz+ -]|$)", "$1T$2:00"),
        (r"^(.{10})t", "$1T"),
        (r"(:\d{2}),(\d)", "$1.$2"),
        (r"(\.\d{9})\d+", "$1"),
        (r"\[[A-Za-z0-9_/+-]+\]$", ""),
        (r"^(.{10}T.{8,18}?) ?z$", "$1Z"),
        (r"^(.{10}[T ][0-9:.]{8,18}) ?([+-]\d{2})$", "$1$2:00"),
    ):
        text = F.regexp_replace(text, F.lit(pattern), F.lit(replacement))
    return text


def _timestamp_epoch(text: Column, per_second: int, latest: Column) -> Made:
    number = F.when(text.rlike(r"^[0-9]{1,19}(\.[0-9]{1,9})?$"), text.try_cast("decimal(28,9)"))
    micros = (number * F.lit(1_000_000).cast("decimal(7,0)") / F.lit(per_second).cast("decimal(10,0)")).try_cast(
        "bigint"
    )
    bounded = F.when(micros < _LATEST_MICROS, micros)
    return _time(text, F.timestamp_micros(bounded), latest)


def _timestamp_mmddhhmmss(text: Column, latest: Column) -> Made:
    # Equal lengths, so the order of the texts is the order of the times within a year.
    year = F.year(latest) - F.when(text > F.date_format(latest, "MMddHHmmss"), 1).otherwise(0)
    leap = year - year % 4
    leap = leap - F.when((leap % 100 == 0) & (leap % 400 != 0), 4).otherwise(0)
    year = F.when(text.startswith("0229"), leap).otherwise(year)
    parts = [F.substring(text, at, 2) for at in (1, 3, 5, 7, 9)]
    date = F.concat_ws("-", year.cast("string"), *parts[:2])
    time = F.concat(date, F.lit("T"), F.concat_ws(":", *parts[2:]), F.lit("Z")).try_cast("timestamp")
    return _time(text, F.when(text.rlike("^[0-9]{10}$"), time), latest)


def _time(text: Column, time: Column, latest: Column) -> Made:
    earliest = F.lit("1970-01-01T00:00:00Z").cast("timestamp")
    kind = F.when(time > latest, "future").otherwise("format")
    return Made(time, _fault(text, kind), lambda value: value.between(earliest, latest))


def _alphabetic(text: Column, codes: set[str]) -> Made:
    return Made(F.when(text.isin(sorted(codes)), text), _fault(text, "unknown"))


def _numeric(text: Column, codes: dict[str, str]) -> Made:
    # An array indexed by the number is one step; a map literal would be searched in order.
    table = F.split(F.lit(",".join(codes.get(f"{number:03d}", "") for number in range(1000))), ",")
    number = F.when(text.rlike("^[0-9]{1,3}$"), text.try_cast("int"))
    return Made(F.nullif(F.get(table, number), F.lit("")), _fault(text, "unknown"))


def _padded(text: Column, digits: int | None) -> Column:
    return (
        text
        if digits is None
        else F.when(text.rlike(f"^[0-9]{{1,{digits}}}$"), F.lpad(text, digits, "0")).otherwise(text)
    )


def _join(spec: m.Join, row: Row) -> Made:
    texts = [(row.text(part.path), part) for part in spec.parts]
    parts = (
        F.when(F.coalesce(text, F.lit("")).rlike(f"^{_TEXT}$"), F.left(text, F.lit(part.length or 128))).otherwise(
            F.when(F.coalesce(text, F.lit("")) == "", F.lit("")) if part.optional else None
        )
        for text, part in texts
    )
    # each after a separator but the first; concat_ws would skip what is null
    first, *others = parts
    joined = F.concat(first, *(each for part in others for each in (F.lit(_SEPARATOR), part)))
    return Made(joined, F.lit("format"))


def _first(spec: m.First, row: Row) -> Made:
    value = F.lit(spec.default)
    for table in reversed(spec.of):
        text = row.text(table.path)
        key = text if table.length is None else F.left(text, F.lit(table.length))
        for word, meaning in table.table.items():
            value = F.when(key == word, meaning).otherwise(value)
    return Made(value, F.lit(None).cast("string"))


def _lookup(text: Column, table: dict[str, str], default: str | None, blank: str | None = None) -> Made:
    value = F.when((text != "") & ~text.rlike(_OTHER_TYPE), F.lit(default)) if default is not None else F.lit(None)
    for word, meaning in table.items():
        value = F.when(text == word, meaning).otherwise(value)
    if blank is not None:
        value = F.when(F.coalesce(text, F.lit("")) == "", blank).otherwise(value)
    return Made(value.cast("string"), _fault(text, "unknown"))
