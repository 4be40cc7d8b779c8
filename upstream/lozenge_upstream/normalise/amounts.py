"""Amounts as decimals with four places, of the texts that sources write and of the sign that other fields give."""

import re
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts.money import MINOR_DIGITS
from lozenge_upstream.normalise.declarations import Decimal, MinorUnits, Sign, currency_of
from lozenge_upstream.normalise.transform_result import Made, Row, fault, let

_INTEGER_DIGITS = 14  # what decimal(18,4) leaves before the point
_WHOLE = rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}$"
_SPACES = "[ \u00a0\u202f]"


def decimal(spec: Decimal, row: Row) -> Made:
    """An amount in major units, in no more decimals than its currency has."""
    digits, written = _digits(spec, row), row.text(spec.path)

    def value(text: Column) -> Column:
        fits = _by_digits(digits, lambda n: text.rlike(_major(n)))
        return F.when(fits, text.try_cast("decimal(18,4)"))

    def kind(text: Column) -> Column:
        return (
            F.when(~text.rlike(r"^[+-]?[0-9]+(\.[0-9]+)?$"), "format")
            .when(~text.rlike(rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}(\.|$)"), "digits")
            .when(digits.isNotNull(), "decimals")
        )

    if not (spec.symbols or spec.thousands or spec.accounting or spec.decimal_mark != "."):
        return _signed(Made(value(written), fault(written, kind(written))), spec, row)
    text = _plain(written, spec)
    return _signed(Made(let(text, value), fault(written, let(text, kind))), spec, row)


def minor_units(spec: MinorUnits, row: Row) -> Made:
    """An amount in minor units of its currency."""
    text = row.text(spec.path)
    unit = _by_digits(_digits(spec, row), lambda n: F.lit(f"1e-{n}").cast("decimal(5,4)"))
    units = _units(text)
    if spec.sign is not None and spec.remaining is not None:
        rest = row.part(spec.remaining)
        of_a_part = row.part(spec.sign).isin(*spec.sign.minus) & (rest != "")
        if spec.remaining.when:
            of_a_part = of_a_part & row.holds(spec.remaining.when)
        units = F.when(of_a_part, F.when(_units(rest) <= units, units - _units(rest))).otherwise(units)
    kind = (
        F.when(~text.rlike(r"^[+-]?[0-9]+$"), "format")
        .when(~text.rlike(_WHOLE), "digits")
        .when(_digits(spec, row).isNotNull(), "format")
    )
    return _signed(Made((units * unit).try_cast("decimal(18,4)"), fault(text, kind)), spec, row)


def _digits(spec: Decimal | MinorUnits, row: Row) -> Column:
    assert row.field is not None
    place = currency_of(row.field.name, spec, row.scopes)
    assert place is not None  # an amount has a currency, see `field_checks`
    return row.minor_digits[place]


def is_other_kind(sign: Sign, row: Row) -> Column:
    """Whether the field of a sign says something that is neither a payment nor a reversal; never null."""
    kind = F.coalesce(row.part(sign), F.lit(""))
    return (kind != "") & ~kind.isin(*sign.plus, *sign.minus)


def _signed(amount: Made, spec: Decimal | MinorUnits, row: Row) -> Made:
    refusal, payment = amount.fault, -1 if spec.invert else 1
    direction = F.lit(payment)
    if spec.sign is not None:
        kind = row.part(spec.sign)
        direction = F.when(kind.isin(*spec.sign.plus), payment).when(kind.isin(*spec.sign.minus), -payment)
        refusal = F.when(is_other_kind(spec.sign, row), "kind").otherwise(refusal)
    if spec.credits is not None:
        credit = row.part(spec.credits).isin(*spec.credits.values)
        direction = direction * F.when(credit, -1).otherwise(1)
    return replace(amount, value=(amount.value * direction).try_cast("decimal(18,4)"), fault=refusal)


def _plain(text: Column, spec: Decimal) -> Column:
    """The number with a point and a minus in front, and nothing else; what is written in another way stays so."""
    if spec.accounting:
        text = _replaced(text, r"^\((?![^)]*-)(.*)\)$", "-$1")
        text = _replaced(text, r"^([^-]*[0-9])-$", "-$1")
    if spec.symbols:
        symbol = "|".join(re.escape(each) for each in spec.symbols)
        text = _replaced(text, rf"^([+-]?){_SPACES}?(?:{symbol}){_SPACES}?(?=[0-9]|(?<![+-].{{0,9}})[+-])", "$1")
        text = _replaced(text, rf"(?<=[0-9]){_SPACES}?(?:{symbol})$", "")
    if spec.thousands is not None:
        group = {" ": _SPACES, "'": "['\u2019]"}.get(spec.thousands, re.escape(spec.thousands))
        mark = re.escape(spec.decimal_mark)
        # possessive: Java would match other groups by recursion, and many of them overflow its stack
        grouped = rf"^[+-]?[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})++(?<={group}[0-9]{{3}})(?:{mark}|$)"
        text = let(text, lambda it: F.when(it.rlike(grouped), _replaced(it, group, "")).otherwise(it))
    if spec.decimal_mark == ",":
        # a point is no mark here: what has one must not pass for a number
        point, comma = F.lit("."), F.lit(",")
        text = let(text, lambda it: F.when(it.contains("."), F.lit("?")).otherwise(F.replace(it, comma, point)))
    return text


def _replaced(text: Column, pattern: str, replacement: str) -> Column:
    return F.regexp_replace(text, F.lit(pattern), F.lit(replacement))


def _by_digits(digits: Column, branch: Callable[[int], Column]) -> Column:
    found = F.lit(None)
    for count in sorted(set(MINOR_DIGITS.values())):
        found = F.when(digits == count, branch(count)).otherwise(found)
    return found


def _major(decimals: int) -> str:
    return rf"^[+-]?0*[0-9]{{1,{_INTEGER_DIGITS}}}(\.(?=[0-9])[0-9]{{0,{decimals}}}0*)?$"


def _units(text: Column) -> Column:
    return F.when(text.rlike(_WHOLE), text.try_cast("decimal(18,0)"))
