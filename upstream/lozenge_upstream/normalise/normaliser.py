"""A raw record becomes the fields of an event, or the reason why it cannot. A pure function of the record.

The steps are separate projections, because Spark computes an expression once only if a later
projection refers to it by name:

    text -> parsed -> fields as texts -> canonical values -> reason

`reason` is null for a good record, else every problem at once: `missing:merchant_id, type:amount`.
A problem is `<kind>:<canonical field>`, or a bare kind where it concerns the whole record:

    tombstone  empty  framed  invalid-utf8  lone-surrogate  invalid-json    stage decode, and then the only problem
    missing    the field is absent, null or blank
    type       JSON of another type, such as an object where a text belongs
    format     not of the form that the mapping requires
    unknown    a code or word that is in no table
    digits     more digits before the point than an event can carry
    decimals   more decimals than the currency has
    kind       `kind:<raw field>`, then the only problem: the record is neither a payment nor a reversal
    pan        a text that the event would copy holds a card number
    future     later than the raw record's Kafka timestamp by more than ten minutes
    range      before 1980: a clock that was never set, or an epoch in another unit than the mapping says.
               `range:raw.timestamp`, then the only problem: the Kafka timestamp is not of the years 2000 to 2199. Its
               producer counts seconds or microseconds instead of milliseconds, or has no clock

JSON numbers are taken as their text, also with an exponent; an amount or epoch never passes through a binary fraction,
an identifier does if it is written as one. Of a key that occurs twice the last value counts. Spaces around a value
and a byte order mark before the record do not. `framed` begins with a zero byte, as records of a schema registry do.
Half of a surrogate pair (`\\ud83d` alone) is no character: Java would write a question mark, and two ids could become
one.
"""

import json
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType, VariantType

from lozenge.contracts import ids
from lozenge.contracts.money import minor_digits_column
from lozenge_upstream.normalise.mapping import OPTIONAL, Mapping
from lozenge_upstream.normalise.mapping_transforms import Text, TimestampIso, TimestampMMDDhhmmss, segments
from lozenge_upstream.normalise.transform_result import Made, Row, plain
from lozenge_upstream.normalise.transforms import make, without_card_numbers

DECODE_KINDS = ("tombstone", "empty", "framed", "invalid-utf8", "lone-surrogate", "invalid-json")
KINDS = (*DECODE_KINDS, "missing", "type", "format", "unknown", "digits", "decimals", "kind", "pan", "future", "range")
FUTURE_SECONDS = 600
"""How far an event may lie after its raw record's Kafka timestamp; clocks differ."""

Names = tuple[str, ...]
"""The names of nested fields, from the outermost."""
CLOCK = "range:raw.timestamp"
"""The reason for a record whose Kafka timestamp says nothing about when it was written."""
_CLOCK_FROM, _CLOCK_UNTIL = "2000-01-01T00:00:00Z", "2200-01-01T00:00:00Z"

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE = rf"(?<!\\)(\\\\)*({_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
_STRICT = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "_broken",
}


def normalise(raw: DataFrame, mapping: Mapping, token_key: bytes) -> DataFrame:
    """`raw`, as Spark's Kafka source gives it, with the event's fields, `event_id` and `reason` added.

    Where `reason` is not null the event's fields mean nothing. The session's time zone must be UTC.
    """
    texts = {path: F.col(f"_text_{index}") for index, path in enumerate(mapping.paths)}
    latest = F.timestamp_micros(F.try_add(F.unix_micros("timestamp"), F.lit(FUTURE_SECONDS * 1_000_000)))
    row = Row(texts.__getitem__, latest, F.col("_minor_digits"), token_key)
    made = {name: make(spec, row) for name, spec in mapping.fields.declared()}
    made |= {name: without_card_numbers(made[name]) for name in _copied_texts(mapping)}
    parsed = raw.withColumn("_parsed", _parse(mapping)).select(
        *raw.columns,
        _is_record().alias("_is_record"),
        *(_text(path, mapping).alias(f"_text_{index}") for index, path in enumerate(mapping.paths)),
    )
    numbers = {
        f"_text_{index}": plain(texts[path])
        for index, path in enumerate(mapping.paths)
        if segments(path) in _numbers(mapping)
    }
    valued = (
        parsed.withColumns(numbers)
        .withColumns(
            {name: columns.value for name, columns in made.items() if name != "amount"}
            | {"_minor_digits": minor_digits_column(made["currency"].value)}
        )
        .withColumn("amount", made["amount"].value)
    )
    absent = {name: F.lit(None).cast("string") for name in OPTIONAL if name not in made}
    return (
        valued.withColumns(absent)
        .withColumn("reason", _reason(mapping, made, row))
        .withColumn("event_id", _event_id(mapping.source))
        .drop("_is_record", "_minor_digits", *(f"_text_{index}" for index in range(len(texts))))
    )


def _copied_texts(mapping: Mapping) -> list[str]:
    """The fields that are texts of the record and may hold no card number; its id only goes into a hash."""
    texts = ((name, spec) for name, spec in mapping.fields.declared() if isinstance(spec, Text))
    return [name for name, spec in texts if name != "transaction_id" and spec.card_numbers == "refuse"]


def _parse(mapping: Mapping) -> Column:
    """The record as the first of two in an array, the second being ours: it is read only if the first has ended well.

    So another value, a rest or a bracket too many is seen, not skipped. What is broken within leaves its text in
    `_broken`; else Spark would give the fields that it could read.
    """
    text = F.col("value").cast("string")
    record_text = F.when(text.startswith("\ufeff"), F.substr(text, F.lit(2))).otherwise(text)
    wrapped = F.concat(F.lit('{"_records":['), record_text, F.lit(',{"_end":"'), _end(), F.lit('"}]}'))
    paths = [segments(path) for path in mapping.paths]
    record = _schema(paths, (), _numbers(mapping)).add("_end", StringType())
    schema = StructType().add("_records", ArrayType(record)).add("_broken", StringType())
    return F.when(F.is_valid_utf8(text) & ~_has_lone_surrogate(text), F.from_json(wrapped, schema, _STRICT))


def _is_record() -> Column:
    ended = F.get("_parsed._records", F.lit(1))["_end"] == _end()
    whole = F.col("_parsed._broken").isNull() & (F.size("_parsed._records") == 2) & ended & _record().isNotNull()
    return F.coalesce(whole, F.lit(False))


def _end() -> Column:
    """What a record cannot have copied: its own offset."""
    return F.col("offset").cast("string")


def _has_lone_surrogate(text: Column) -> Column:
    """Whether it escapes half of a pair; records without such an escape, nearly all, cost two searches."""
    return (text.contains(r"\ud") | text.contains(r"\uD")) & text.rlike(_LONE)


def _record() -> Column:
    return F.get("_parsed._records", F.lit(0))


def _numbers(mapping: Mapping) -> set[Names]:
    """The fields of which a JSON number has to keep all of its digits: the amount, and the time as an epoch."""
    amount, time = mapping.fields.amount, mapping.fields.event_time
    return {segments(spec.path) for spec in (amount, time) if not isinstance(spec, TimestampIso | TimestampMMDDhhmmss)}


def _schema(paths: list[Names], prefix: Names, numbers: set[Names]) -> StructType:
    """Texts, except for the `numbers`: only as a variant does a JSON number keep all of its digits."""
    children: dict[str, list[Names]] = {}
    for name, *rest in paths:
        children.setdefault(name, []).extend([tuple(rest)] if rest else [])
    return StructType([StructField(n, _type((*prefix, n), below, numbers)) for n, below in children.items()])


def _type(path: Names, below: list[Names], numbers: set[Names]) -> DataType:
    if below:
        return _schema(below, path, numbers)
    return VariantType() if path in numbers else StringType()


def _text(path: str, mapping: Mapping) -> Column:
    names = segments(path)
    field = reduce(Column.getItem, names, _record())
    if names in _numbers(mapping):
        # A number with an exponent, or too long for a decimal, has been rounded to a double.
        rounded = F.schema_of_variant(field) == "DOUBLE"
        field = F.when(rounded, _with_exponent(field, names[-1])).otherwise(F.try_variant_get(field, "$", "string"))
    return F.trim(field)


def _with_exponent(number: Column, name: str) -> Column:
    """The number with an exponent that the record has under this name, if that is the `number`; no number else."""
    member = rf"\Q{json.dumps(name, ensure_ascii=False)}\E\s*:\s*(-?[0-9.]+[eE][+-]?[0-9]+)"
    written = F.regexp_extract(F.col("value").cast("string"), member, 1)
    same = written.try_cast("double") == F.try_variant_get(number, "$", "double")
    return F.when(same, written).otherwise("inexact")


def _reason(mapping: Mapping, made: dict[str, Made], row: Row) -> Column:
    blank, sign = F.lit(""), mapping.fields.amount.sign
    presence = {
        name: reduce(and_, (F.coalesce(row.text(path), blank) != blank for path in spec.required), F.lit(True))
        for name, spec in mapping.fields.declared()
    }
    settled = {name: columns.accepts(F.col(name)) for name, columns in made.items()}
    settled |= {name: settled[name] | ~presence[name] for name in OPTIONAL if name in made}
    problems = (
        F.when(
            ~settled[name], F.concat(F.when(~presence[name], "missing").otherwise(made[name].fault), F.lit(f":{name}"))
        )
        for name in made
    )
    return (
        F.when(F.col("_is_record") & _has_clock() & reduce(and_, settled.values()), F.lit(None).cast("string"))
        .when(F.col("value").isNull(), "tombstone")
        .when(F.length("value") == 0, "empty")
        .when(F.startswith("value", F.unhex(F.lit("00"))), "framed")
        .when(~F.is_valid_utf8(F.col("value").cast("string")), "invalid-utf8")
        .when(_has_lone_surrogate(F.col("value").cast("string")), "lone-surrogate")
        .when(~F.col("_is_record"), "invalid-json")
        .when(~_has_clock(), CLOCK)
        .when(_is_other_kind(mapping, row), F.lit(f"kind:{sign.path}" if sign is not None else ""))
        .otherwise(F.concat_ws(", ", *problems))
    )


def _is_other_kind(mapping: Mapping, row: Row) -> Column:
    """Whether the field that says so says that it is neither a payment nor a reversal; never null."""
    sign = mapping.fields.amount.sign
    if sign is None:
        return F.lit(False)
    kind = F.coalesce(row.text(sign.path), F.lit(""))
    return (kind != "") & ~kind.isin(*sign.plus, *sign.minus)


def _has_clock() -> Column:
    time = F.col("timestamp")
    return (time >= F.lit(_CLOCK_FROM).cast("timestamp")) & (time < F.lit(_CLOCK_UNTIL).cast("timestamp"))


def _event_id(source: str) -> Column:
    coordinates = F.concat_ws("/", "topic", "partition", "offset")
    return ids.uuid5_column(F.lit(source), F.coalesce(F.col("transaction_id"), coordinates))
