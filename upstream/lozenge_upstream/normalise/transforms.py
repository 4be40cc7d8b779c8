"""What each transform of a mapping does, as pure column functions.

Every function returns `Made`: the value, null where the raw text cannot be accepted, and the kind of
fault, which is looked at only then. So a good record costs one null check per field, and no text
whatsoever can raise: under Spark's ANSI mode only `try_` functions and guarded ones are used here.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts.card_numbers import has_card_number_column
from lozenge.contracts.money import ALPHABETIC as CURRENCY_CODES
from lozenge.contracts.money import MINOR_DIGITS
from lozenge_upstream.normalise import mapping_transforms as m
from lozenge_upstream.normalise import times
from lozenge_upstream.normalise.countries import ALPHA2, ALPHA3
from lozenge_upstream.normalise.countries import ALPHABETIC as COUNTRY_CODES
from lozenge_upstream.normalise.transform_result import OTHER_TYPE, Made, Row, fault

_INTEGER_DIGITS = 14  # what decimal(18,4) leaves before the point
_TEXT = r"(?!true$|false$)[^\[{\p{Cntrl}][^\p{Cntrl}]{0,127}"
_WHOLE = rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}$"
_SHA256_BLOCK = 64
_SEPARATOR = "\x1f"


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
            return _token(row.text(spec.path), spec.pattern, row.token_key)
        case m.Decimal():
            return _signed(_decimal(row.text(spec.path), row.minor_digits), spec, row)
        case m.MinorUnits():
            return _signed(_minor_units(spec, row), spec, row)
        case m.TimestampIso():
            return times.timestamp_iso(row.text(spec.path), spec.offset_default, row.latest)
        case m.TimestampEpoch():
            return times.timestamp_epoch(row.text(spec.path), times.PER_SECOND[spec.unit], row.latest)
        case m.TimestampMMDDhhmmss():
            return times.timestamp_mmddhhmmss(row.text(spec.path), row.latest)
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
    kind = F.when(made.value.isNotNull(), "pan").otherwise(made.fault)
    return Made(made.value, kind, lambda value: ~has_card_number_column(value))


def token(card: Column, key: bytes) -> Column:
    """`card_` and 24 hex digits of HMAC-SHA256(key, card), the card as ASCII digits."""
    block = key if len(key) <= _SHA256_BLOCK else hashlib.sha256(key).digest()
    block = block.ljust(_SHA256_BLOCK, b"\0")
    inner, outer = (F.lit(bytearray(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    message = F.unhex(F.sha2(F.concat(inner, card.cast("binary")), 256))
    return F.concat(F.lit("card_"), F.left(F.sha2(F.concat(outer, message), 256), F.lit(24)))


def _text(text: Column, pattern: str | None) -> Made:
    whole = f"^(?={_TEXT}$)(?:{pattern})$" if pattern else f"^{_TEXT}$"
    return Made(F.when(text.rlike(whole), text), fault(text, "format"))


def _token(text: Column, pattern: str | None, key: bytes) -> Made:
    if pattern is not None:
        other = _text(text, pattern)
        return replace(other, value=token(other.value, key))
    card = F.translate(text, "\u00a0 -", "")
    # one digit all along is no card: all such records would be of the same one
    return Made(F.when(card.rlike(r"^(?!([0-9])\1*$)[0-9]{12,19}$"), token(card, key)), fault(text, "format"))


def _decimal(text: Column, digits: Column) -> Made:
    fits = _by_digits(digits, lambda n: text.rlike(_major(n)))
    kind = (
        F.when(~text.rlike(r"^[+-]?[0-9]+(\.[0-9]+)?$"), "format")
        .when(~text.rlike(rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}(\.|$)"), "digits")
        .when(digits.isNotNull(), "decimals")
    )
    return Made(F.when(fits, text.try_cast("decimal(18,4)")), fault(text, kind))


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
    if spec.credits is not None:
        credit = _slice(spec.credits, row).isin(*spec.credits.values)
        direction = direction * F.when(credit, -1).otherwise(1)
    return replace(amount, value=(amount.value * direction).try_cast("decimal(18,4)"))


def _minor_units(spec: m.MinorUnits, row: Row) -> Made:
    text = row.text(spec.path)
    unit = _by_digits(row.minor_digits, lambda n: F.lit(f"1e-{n}").cast("decimal(5,4)"))
    units = _units(text)
    if spec.sign is not None and spec.remaining is not None:
        rest = _slice(spec.remaining, row)
        of_a_part = row.text(spec.sign.path).isin(*spec.sign.minus) & (rest != "")
        units = F.when(of_a_part, F.when(_units(rest) <= units, units - _units(rest))).otherwise(units)
    kind = (
        F.when(~text.rlike(r"^[+-]?[0-9]+$"), "format")
        .when(~text.rlike(_WHOLE), "digits")
        .when(row.minor_digits.isNotNull(), "format")
    )
    return Made((units * unit).try_cast("decimal(18,4)"), fault(text, kind))


def _units(text: Column) -> Column:
    return F.when(text.rlike(_WHOLE), text.try_cast("decimal(18,0)"))


def _alphabetic(text: Column, codes: set[str]) -> Made:
    return Made(F.when(text.isin(sorted(codes)), text), fault(text, "unknown"))


def _numeric(text: Column, codes: dict[str, str]) -> Made:
    # An array indexed by the number is one step; a map literal would be searched in order.
    table = F.split(F.lit(",".join(codes.get(f"{number:03d}", "") for number in range(1000))), ",")
    number = F.when(text.rlike("^[0-9]{1,3}$"), text.try_cast("int"))
    return Made(F.nullif(F.get(table, number), F.lit("")), fault(text, "unknown"))


def _padded(text: Column, digits: int | None) -> Column:
    """With its leading zeros; a column of numbers with gaps comes as floats, `5411.0`, from data frames."""
    if digits is None:
        return text
    whole = F.regexp_replace(text, F.lit(r"\.0$"), F.lit(""))
    return F.when(whole.rlike(f"^[0-9]{{1,{digits}}}$"), F.lpad(whole, digits, "0")).otherwise(text)


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
        if table.default is not None:
            value = F.when((text != "") & ~text.rlike(OTHER_TYPE), table.default).otherwise(value)
        for word, meaning in table.table.items():
            value = F.when(_slice(table, row) == word, meaning).otherwise(value)
    return Made(value, fault(row.text(spec.of[-1].path), "unknown"))


def _slice(spec: m.Slice, row: Row) -> Column:
    text = _padded(row.text(spec.path), spec.pad)
    return text if spec.length is None else F.left(text, F.lit(spec.length))


def _lookup(text: Column, table: dict[str, str], default: str | None, blank: str | None = None) -> Made:
    value = F.when((text != "") & ~text.rlike(OTHER_TYPE), F.lit(default)) if default is not None else F.lit(None)
    for word, meaning in table.items():
        value = F.when(text == word, meaning).otherwise(value)
    if blank is not None:
        value = F.when(F.coalesce(text, F.lit("")) == "", blank).otherwise(value)
    return Made(value.cast("string"), fault(text, "unknown"))
