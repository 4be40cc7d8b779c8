"""What each transform of a mapping does, as pure column functions.

Every function returns `Made`: the value, null where the raw text cannot be accepted, and the kind of
fault, which is looked at only then. So a good record costs one null check per field, and no text
whatsoever can raise: under Spark's ANSI mode only `try_` functions and guarded ones are used here.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge.contracts.card_numbers import has_card_number_column, masked_column
from lozenge.contracts.money import ALPHABETIC as CURRENCY_CODES
from lozenge.contracts.money import MINOR_DIGITS
from lozenge.streams.fields import Field
from lozenge_upstream.normalise import amounts, field_types, nested_values, times
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise.countries import ALPHA2, ALPHA3
from lozenge_upstream.normalise.countries import ALPHABETIC as COUNTRY_CODES
from lozenge_upstream.normalise.transform_result import OTHER_TYPE, Made, Row, fault, let, padded

_TEXT = r"(?!true$|false$)[^\[{\p{Cc}][^\p{Cc}]{0,127}"
_SHA256_BLOCK = 64


def make(spec: d.Transform, row: Row) -> Made:
    """The columns of one transform."""
    match spec:
        case d.Constant():
            return Made(F.lit(spec.value), F.lit(None).cast("string"))
        case d.Text():
            pattern = spec.pattern or (row.field.pattern if row.field is not None else None)
            return _or_blank(_text(padded(row.text(spec.path), spec.pad), pattern), spec, row)
        case d.Join():
            joined = _of_form(_joined(spec.parts, spec.separator, row), row.field)
            return Made(joined, _fault_of(spec.paths, "format", row))
        case d.Reference():
            return _reference(spec, row)
        case d.Token():
            return _token(spec, row)
        case d.Decimal():
            return amounts.decimal(spec, row)
        case d.MinorUnits():
            return amounts.minor_units(spec, row)
        case d.Number() if row.field is not None:
            return field_types.number(row.text(spec.path), row.field)
        case d.Boolean():
            return field_types.boolean(row.text(spec.path), spec)
        case d.Local() | d.TimestampEpoch() | d.TimestampMMDDhhmmss():
            return times.timestamp(spec, row)
        case d.Currency(code="alpha"):
            return _or_blank(_alphabetic(row.text(spec.path), set(MINOR_DIGITS)), spec, row)
        case d.Currency():
            return _or_blank(_numeric(row.text(spec.path), CURRENCY_CODES), spec, row)
        case d.Country(code="alpha"):
            return _or_blank(_alphabetic(row.text(spec.path), ALPHA2), spec, row)
        case d.Country(code="alpha3"):
            return _or_blank(_lookup(row.text(spec.path), ALPHA3, None), spec, row)
        case d.Country():
            return _or_blank(_numeric(row.text(spec.path), COUNTRY_CODES), spec, row)
        case d.Lookup():
            return _or_blank(_lookup(row.text(spec.path), spec.table, spec.default), spec, row)
        case d.First():
            return _first(spec, row)
        case d.CaseOf():
            return _case(spec, row)
        case d.RecordOf():
            return nested_values.record(spec, row, make_copied)
        case d.ListOf():
            return nested_values.list_of(spec, row, make_copied)
        case d.MapOf():
            return nested_values.map_of(spec, row, make_copied)
    raise AssertionError(f"{type(spec).__name__} is not one of the transforms")


def without_card_numbers(made: Made, treatment: d.CardNumbers) -> Made:
    """The same text, refused where it holds a card number, or with that number masked."""
    if treatment == "keep":
        return made
    value = masked_column(made.value) if treatment == "mask" else made.value
    kind = F.when(made.value.isNotNull(), "pan").otherwise(made.fault)
    return Made(value, kind, lambda value: ~has_card_number_column(value))


def make_copied(spec: d.Transform, row: Row) -> Made:
    """The same for what an event has as it is, itself or within: no text of the record takes a card number there."""
    made = make(spec, row)
    if isinstance(spec, d.Text | d.Join):
        return without_card_numbers(made, spec.card_numbers)
    return without_card_numbers(made, "refuse") if isinstance(spec, d.Token) and spec.copied else made


def token(value: Column, key: bytes, prefix: str) -> Column:
    """`<prefix>_` and 24 hex digits of HMAC-SHA256(key, value)."""
    block = key if len(key) <= _SHA256_BLOCK else hashlib.sha256(key).digest()
    block = block.ljust(_SHA256_BLOCK, b"\0")
    inner, outer = (F.lit(bytearray(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    message = F.unhex(F.sha2(F.concat(inner, value.cast("binary")), 256))
    return F.concat(F.lit(f"{prefix}_"), F.left(F.sha2(F.concat(outer, message), 256), F.lit(24)))


def _text(text: Column, pattern: str | None) -> Made:
    whole = f"^(?={_TEXT}$)(?:{pattern})$" if pattern else f"^{_TEXT}$"
    return Made(F.when(text.rlike(whole), text), fault(text, "format"))


def _or_blank(made: Made, spec: d.Text | d.Currency | d.Country | d.Lookup, row: Row) -> Made:
    if spec.blank is None:
        return made
    blank = F.coalesce(row.text(spec.path), F.lit("")) == ""
    return replace(made, value=F.when(blank, spec.blank).otherwise(made.value))


def _token(spec: d.Token, row: Row) -> Made:
    prefix = row.tokens[row.name]
    if spec.parts is not None:
        joined = _joined(spec.parts, d.IDENTITY_SEPARATOR, row)
        return Made(token(joined, row.token_key, prefix), _fault_of(spec.paths, "format", row))
    assert spec.path is not None
    text = row.text(spec.path)
    if spec.pattern is not None:
        other = _text(text, spec.pattern)
        whole = F.lower(other.value) if spec.lower else other.value
        return other if spec.copied else replace(other, value=token(whole, row.token_key, prefix))
    card = F.translate(text, "\u00a0 -", "")
    # one digit all along is no card: all such records would be of the same one
    return Made(
        F.when(card.rlike(r"^(?!([0-9])\1*$)[0-9]{12,19}$"), token(card, row.token_key, prefix)),
        fault(text, "format"),
    )


def _alphabetic(text: Column, codes: set[str]) -> Made:
    return Made(F.when(text.isin(sorted(codes)), text), fault(text, "unknown"))


def _numeric(text: Column, codes: dict[str, str]) -> Made:
    # An array indexed by the number is one step; a map literal would be searched in order.
    table = F.split(F.lit(",".join(codes.get(f"{number:03d}", "") for number in range(1000))), ",")
    number = F.when(text.rlike("^[0-9]{1,3}$"), text.try_cast("int"))
    return Made(F.nullif(F.get(table, number), F.lit("")), fault(text, "unknown"))


def _joined(parts: Iterable[d.Part], separator: str, row: Row) -> Column:
    """The parts with the separator between them; null where one is missing or is no text."""
    texts: list[Column | str] = []
    for part in parts:
        # each after a separator but the first; concat_ws would skip what is null
        texts += [separator] if texts else []
        texts.append(F.lit(part.value) if part.slice is None else _part(row.part(part.slice), part.optional))
    return F.concat(*(F.lit(each) if isinstance(each, str) else each for each in texts))


def _of_form(text: Column, field: Field | None) -> Column:
    """The text if it has the pattern that its field declares, if that declares one."""
    if field is None or field.pattern is None:
        return text
    whole = f"^(?:{field.pattern})$"
    return let(text, lambda it: F.when(it.rlike(whole), it))


def _part(text: Column, optional: bool) -> Column:
    held = F.coalesce(text, F.lit(""))
    return F.when(held.rlike(f"^{_TEXT}$"), held).otherwise(F.when(held == "", F.lit("")) if optional else None)


def _reference(spec: d.Reference, row: Row) -> Made:
    identity, named = F.lit(None).cast("string"), F.lit(False)
    for each in reversed(spec.of):
        holds = row.holds(each.when)
        identity = F.when(holds, _joined(each.parts, d.IDENTITY_SEPARATOR, row)).otherwise(identity)
        named = holds | named
    value = ids.uuid5_column(F.lit(row.source), identity)
    return Made(value, _fault_of(spec.required, "format", row), absent=~named)


def _fault_of(paths: Iterable[str], otherwise: str, row: Row) -> Column:
    """The kind of fault of a value of several raw fields: `missing` where none of them is there."""
    texts = [F.coalesce(row.text(path), F.lit("")) for path in paths]
    if not texts:
        return F.lit(otherwise)
    return (
        F.when(F.concat(*texts) == "", "missing")
        .when(F.exists(F.array(*texts), lambda text: text.rlike(OTHER_TYPE)), "type")
        .otherwise(otherwise)
    )


def _first(spec: d.First, row: Row) -> Made:
    value = F.lit(spec.default)
    for table in reversed(spec.of):
        text, found = row.text(table.path), value
        if table.default is not None:
            found = F.when((text != "") & ~text.rlike(OTHER_TYPE), table.default).otherwise(found)
        for meaning in sorted({*table.table.values()}):
            words = [word for word, of in table.table.items() if of == meaning]
            found = F.when(row.part(table).isin(*words), meaning).otherwise(found)
        value = F.when(row.holds(table.when), found).otherwise(value) if table.when else found
    return _word(value, fault(row.text(spec.of[-1].path), "unknown"), spec, row)


def _case(spec: d.CaseOf, row: Row) -> Made:
    value = F.lit(spec.default).cast("string")
    for branch in reversed(spec.of):
        value = F.when(row.holds(branch.when), branch.value).otherwise(value)
    return _word(value, _fault_of(dict.fromkeys(spec.paths), "unknown", row), spec, row)


def _word(value: Column, kind: Column, spec: d.First | d.CaseOf, row: Row) -> Made:
    """A word in the type of its field, which is a text or a truth value."""
    truth = row.field is not None and row.field.kind == "boolean"
    absent = F.lit(True) if spec.optional else None
    return Made(value.try_cast("boolean") if truth else value, kind, absent=absent)


def _lookup(text: Column, table: dict[str, str], default: str | None) -> Made:
    value = F.when((text != "") & ~text.rlike(OTHER_TYPE), F.lit(default)) if default is not None else F.lit(None)
    for word, meaning in table.items():
        value = F.when(text == word, meaning).otherwise(value)
    return Made(value.cast("string"), fault(text, "unknown"))
