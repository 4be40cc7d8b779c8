"""A raw record becomes the fields of an event, or the reason why it cannot. A pure function of the record.

The steps are separate projections, because Spark computes an expression once only if a later
projection refers to it by name:

    text -> parsed -> fields as texts -> canonical values -> reason

`reason` is null for a good record, else every problem at once: `missing:merchant_id, type:amount`.
A problem is `<kind>:<canonical field>`, or a bare kind where it concerns the whole record:

    tombstone  empty  invalid-utf8  invalid-json    stage decode, and then the only problem
    missing    the field is absent, null or blank
    type       JSON of another type, such as an object where a text belongs
    format     not of the form that the mapping asks for
    unknown    a code or word that is in no table
    digits     more digits before the point than an event can carry
    decimals   more decimals than the currency has
    sign       the record is neither a payment nor a reversal
    future     later than the raw record's Kafka timestamp by more than ten minutes

JSON numbers are taken as their text; an amount never passes through a binary fraction. Of a key that
occurs twice the last value counts. Spaces around a value do not.
"""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType, VariantType

from lozenge import ids
from lozenge.currencies import minor_digits_column
from lozenge_upstream.mapping import OPTIONAL, Mapping
from lozenge_upstream.transforms import Made, Row, make

DECODE_KINDS = ("tombstone", "empty", "invalid-utf8", "invalid-json")
KINDS = (*DECODE_KINDS, "missing", "type", "format", "unknown", "digits", "decimals", "sign", "future")
FUTURE_SECONDS = 600
"""How far an event may lie after its raw record's Kafka timestamp; clocks differ."""

_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def normalise(raw: DataFrame, mapping: Mapping, token_key: bytes) -> DataFrame:
    """`raw`, as Spark's Kafka source gives it, with the event's fields, `event_id` and `reason` added.

    Where `reason` is not null the event's fields mean nothing. The session's time zone must be UTC.
    """
    texts = {path: F.col(f"_text_{index}") for index, path in enumerate(mapping.paths)}
    latest = F.timestamp_micros(F.unix_micros("timestamp") + FUTURE_SECONDS * 1_000_000)
    row = Row(texts.__getitem__, latest, F.col("_minor_digits"), token_key)
    made = {name: make(spec, row) for name, spec in mapping.fields.declared()}
    parsed = raw.withColumn("_parsed", _parse(mapping)).select(
        *raw.columns,
        ((F.size("_parsed") == 1) & _record().isNotNull()).alias("_is_record"),
        *(_text(path, mapping).alias(f"_text_{index}") for index, path in enumerate(mapping.paths)),
    )
    valued = parsed.withColumns(
        {name: columns.value for name, columns in made.items() if name != "amount"}
        | {"_minor_digits": minor_digits_column(made["currency"].value)}
    ).withColumn("amount", made["amount"].value)
    absent = {name: F.lit(None).cast("string") for name in OPTIONAL if name not in made}
    return (
        valued.withColumns(absent)
        .withColumn("reason", _reason(mapping, made, row))
        .withColumn("event_id", _event_id(mapping.source))
        .drop("_is_record", "_minor_digits", *(f"_text_{index}" for index in range(len(texts))))
    )


def _parse(mapping: Mapping) -> Column:
    """The record inside an array of one: so a second value or a rest after the first is seen, not skipped."""
    text = F.col("value").cast("string")
    array = F.concat(F.lit("["), text, F.lit("]"))
    schema = ArrayType(_schema(mapping.paths, "", mapping.fields.amount.path))
    return F.when(F.is_valid_utf8(text), F.from_json(array, schema, _STRICT))


def _record() -> Column:
    return F.get("_parsed", F.lit(0))


def _schema(paths: list[str], prefix: str, amount: str) -> StructType:
    """Texts, except for the amount: only as a variant does a JSON number keep all of its digits."""
    children: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        children.setdefault(name, []).extend([rest] if rest else [])
    return StructType([StructField(n, _type(f"{prefix}{n}", below, amount)) for n, below in children.items()])


def _type(path: str, below: list[str], amount: str) -> DataType:
    if below:
        return _schema(below, f"{path}.", amount)
    return VariantType() if path == amount else StringType()


def _text(path: str, mapping: Mapping) -> Column:
    field = reduce(Column.getField, path.split("."), _record())
    if path == mapping.fields.amount.path:
        # A number with an exponent, or too long for a decimal, has been rounded to a double: not what was written.
        rounded = F.schema_of_variant(field) == "DOUBLE"
        field = F.when(rounded, "inexact").otherwise(F.try_variant_get(field, "$", "string"))
    return F.trim(field)


def _reason(mapping: Mapping, made: dict[str, Made], row: Row) -> Column:
    blank = F.lit("")
    presence = {
        name: reduce(and_, (F.coalesce(row.text(path), blank) != blank for path in spec.paths), F.lit(True))
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
        F.when(F.col("_is_record") & reduce(and_, settled.values()), F.lit(None).cast("string"))
        .when(F.col("value").isNull(), "tombstone")
        .when(F.length("value") == 0, "empty")
        .when(~F.is_valid_utf8(F.col("value").cast("string")), "invalid-utf8")
        .when(~F.col("_is_record"), "invalid-json")
        .otherwise(F.concat_ws(", ", *problems))
    )


def _event_id(source: str) -> Column:
    coordinates = F.concat_ws("/", "topic", "partition", "offset")
    return ids.uuid5_column(F.lit(source), F.coalesce(F.col("transaction_id"), coordinates))
