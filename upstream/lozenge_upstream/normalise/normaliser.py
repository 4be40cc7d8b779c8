"""A raw record becomes the fields of an event, or the reason why it cannot. A pure function of the record.

The steps are separate projections, because Spark computes an expression once only if a later
projection refers to it by name:

    text -> parsed -> fields as texts -> canonical values -> reason

`reason` is null for a good record, else every problem at once: `missing:country, type:amount`.
`lozenge.streams.reasons` has every kind of problem and what it means. Those of a whole record are of stage decode, and
then the only problem. So are two others: `type:<raw field>`, where a path leads into a field that is no such object or
list, and `kind:<raw field>`. Of an amount within a record, a list or a map the latter is `kind:<canonical field>`, and
one of several. `skip:<source>/<name>` is the reason of a record that the mapping skips: counted, and written nowhere.

JSON numbers are taken as their text, also with an exponent; an amount or epoch never passes through a binary fraction,
an identifier does if it is written as one. Of a key that occurs twice the last value counts. Spaces around a value
and a byte order mark before the record do not. `framed` begins with a zero byte, as records of a schema registry do.
Half of a surrogate pair (`\\ud83d` alone) is no character: Java would write a question mark, and two ids could become
one.
"""

from dataclasses import replace
from datetime import timedelta
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge.contracts.money import minor_digits_column
from lozenge.spark import kafka_source
from lozenge.streams.reasons import CLOCK, OF_A_FIELD, OF_A_RECORD
from lozenge_upstream.normalise import nested_values
from lozenge_upstream.normalise.amounts import is_other_kind
from lozenge_upstream.normalise.declarations import Decimal, MinorUnits, Steps, any_element, currencies
from lozenge_upstream.normalise.field_checks import IDENTITY
from lozenge_upstream.normalise.field_types import sql_type
from lozenge_upstream.normalise.json_record import JsonRecord, has_lone_surrogate
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.transform_result import Made, Row, let, plain
from lozenge_upstream.normalise.transforms import make, make_copied

RAW = f"key binary, topic string, timestamp timestamp, timestampType int, {kafka_source.RECORDS}"
"""The columns that `normalise` takes, as Spark DDL."""
DECODE_KINDS = tuple(OF_A_RECORD)
KINDS = (*OF_A_RECORD, *OF_A_FIELD)
_TAKEN = {"key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers", "reason"}
_CLOCK_FROM, _CLOCK_UNTIL = "2000-01-01T00:00:00Z", "2200-01-01T00:00:00Z"
SKIPPED = "skip:"
"""Begins the `reason` of a record that is skipped by declaration; source and name of the declaration follow."""


def normalise(raw: DataFrame, mapping: Mapping, token_key: bytes) -> DataFrame:
    """`raw`, as Spark's Kafka source gives it, with the event's fields, `event_id` and `reason` added.

    Where `reason` is not null the event's fields mean nothing. The session's time zone must be UTC.
    """
    record = JsonRecord(mapping.ways, mapping.numbers)
    texts = {path: F.col(f"_text_{index}") for index, path in enumerate(mapping.paths)}
    containers = {path: F.col(f"_container_{index}") for index, path in enumerate(mapping.containers)}
    cap = F.lit(mapping.stream.future_cap // timedelta(microseconds=1))
    latest = F.timestamp_micros(F.try_add(F.unix_micros("timestamp"), cap))
    root = Row(
        texts.__getitem__,
        latest,
        token_key,
        mapping.source,
        container=containers.__getitem__,
        within=lambda path, step, element: _within(record, root, (*any_element(path), step), element),
        tokens=mapping.stream.tokens,
        scopes=(tuple(mapping.stream.fields),),
        minor_digits={(0, each.name): F.col(_digits_of(each.name)) for each in mapping.stream.fields},
    )
    own = {field.name: field for field in mapping.stream.fields}
    rows = {name: replace(root, name=name, field=own.get(name)) for name, _ in mapping.declared()}
    # its id only goes into a hash
    made = {name: (make if name == IDENTITY else make_copied)(spec, rows[name]) for name, spec in mapping.declared()}
    parsed = raw.withColumn("_parsed", record.parse()).select(
        *raw.columns,
        record.is_record().alias("_is_record"),
        *(record.text(path).alias(f"_text_{index}") for index, path in enumerate(mapping.paths)),
        *(record.container(path).alias(f"_container_{index}") for index, path in enumerate(mapping.containers)),
    )
    numbers = {
        f"_text_{index}": plain(texts[path])
        for index, path in enumerate(mapping.paths)
        if record.is_number(any_element(path))
    }
    amounts = _currencies(mapping)
    used = sorted({name for names in amounts.values() for name in names})
    valued = parsed.withColumns(numbers).withColumns(
        {column_of(name): columns.whole for name, columns in made.items() if name not in amounts}
        | {_digits_of(name): minor_digits_column(made[name].value) for name in used}
    )
    if amounts:
        valued = valued.withColumns({column_of(name): made[name].whole for name in amounts})
    absent = {
        column_of(name): F.lit(None).cast(sql_type(own[name].type) if name in own else "string")
        for name in mapping.optional
        if name not in made
    }
    parted = [(column_of(name), columns) for name, columns in made.items() if columns.checked is not None]
    return (
        valued.withColumns(absent)
        .withColumn("reason", _reason(mapping, made, root, rows, record))
        .withColumn("event_id", _event_id(mapping.source))
        .withColumns({name: columns.value_of(F.col(name)) for name, columns in parted})
        .drop("_is_record", *map(_digits_of, used))
        .drop(*(f"_text_{n}" for n in range(len(texts))), *(f"_container_{n}" for n in range(len(containers))))
    )


def _within(record: JsonRecord, row: Row, place: Steps, element: Column) -> Row:
    """The row for an element of a list or an object, to which `place` leads: its paths begin there."""

    def text(path: str) -> Column:
        found = record.text_within(element, place, path)
        return let(found, plain) if record.is_number((*place, *any_element(path))) else found

    return replace(
        row,
        text=text,
        container=lambda path: record.container_within(element, path),
        within=lambda path, step, inner: _within(record, row, (*place, *any_element(path), step), inner),
    )


def column_of(field: str) -> str:
    """The column with a field of the event: its name, unless a raw record or the platform has a column of that name."""
    return f"_event_{field}" if field.lower() in _TAKEN else field


def _digits_of(currency: str) -> str:
    return f"_minor_digits_{currency}"


def _currencies(mapping: Mapping) -> dict[str, set[str]]:
    """The fields of the event with the currencies of its amounts, by each field that is or has an amount."""
    own, scopes = {field.name: field for field in mapping.stream.fields}, (tuple(mapping.stream.fields),)
    made = ((name, spec, own[name]) for name, spec in mapping.declared() if name in own)
    places = {name: {*currencies(spec, field, scopes)} for name, spec, field in made}
    found = {name: {currency for depth, currency in each if depth == 0} for name, each in places.items()}
    return {name: each for name, each in found.items() if each}


def skips(mapping: Mapping) -> list[str]:
    """Every reason for which the mapping has records skipped."""
    return [f"{SKIPPED}{mapping.source}/{skip.name}" for skip in mapping.skip]


def _reason(mapping: Mapping, made: dict[str, Made], root: Row, rows: dict[str, Row], record: JsonRecord) -> Column:
    specs = dict(mapping.declared())
    presence = {name: rows[name].has(spec.required) for name, spec in specs.items()}
    needed = nested_values.needs(((specs[name], row) for name, row in rows.items()), 0)
    settled = {
        name: columns.settles(
            columns.value_of(F.col(column_of(name))),
            presence[name],
            optional=name in mapping.optional,
            needed=needed.get(name),
        )
        for name, columns in made.items()
    }
    problems = (F.when(~settled[name], _problem(name, columns, presence[name])) for name, columns in made.items())
    skipped = _skipped(mapping, root)
    good = F.col("_is_record") & has_clock() & reduce(and_, settled.values())
    if skipped is not None:
        good = good & skipped.isNull()
    reason = (
        F.when(good, F.lit(None).cast("string"))
        .when(F.col("value").isNull(), "tombstone")
        .when(F.length("value") == 0, "empty")
        .when(F.startswith("value", F.unhex(F.lit("00"))), "framed")
        .when(~F.is_valid_utf8(F.col("value").cast("string")), "invalid-utf8")
        .when(has_lone_surrogate(F.col("value").cast("string")), "lone-surrogate")
        .when(~F.col("_is_record"), _no_record(record))
    )
    if skipped is not None:
        reason = reason.when(skipped.isNotNull(), skipped)
    reason = reason.when(~has_clock(), CLOCK)
    for path, other in _other_kinds(mapping, root).items():
        reason = reason.when(other, f"kind:{path}")
    return reason.otherwise(F.concat_ws(", ", *problems))


def _problem(name: str, made: Made, present: Column) -> Column:
    if made.checked is not None:
        return F.array_join(F.col(column_of(name))["problems"], ", ")
    return made.problem(name, present)


def _no_record(record: JsonRecord) -> Column:
    """`invalid-json`, or the containers that are of another type than the paths into them say."""
    wrong = record.other_containers()
    names = F.concat_ws(", ", F.transform(wrong, lambda name: F.concat(F.lit("type:"), name)))
    return F.when(F.size(wrong) > 0, names).otherwise("invalid-json")


def _skipped(mapping: Mapping, row: Row) -> Column | None:
    """The reason of a record that the mapping skips; null for others, None if it skips none."""
    found: Column | None = None
    for skip, reason in zip(reversed(mapping.skip), reversed(skips(mapping)), strict=True):
        holds = F.when(row.holds(skip.when), reason)
        found = holds if found is None else holds.otherwise(found)
    return found


def _other_kinds(mapping: Mapping, row: Row) -> dict[str, Column]:
    """By the raw field that says so, whether it says neither a payment nor a reversal; never null."""
    found = {}
    for _, spec in mapping.declared():
        if isinstance(spec, Decimal | MinorUnits) and spec.sign is not None:
            found[spec.sign.path] = is_other_kind(spec.sign, row)
    return found


def has_clock() -> Column:
    """Whether the raw record's Kafka timestamp can be when it was written; never null."""
    time = F.col("timestamp")
    return (time >= F.lit(_CLOCK_FROM).cast("timestamp")) & (time < F.lit(_CLOCK_UNTIL).cast("timestamp"))


def _event_id(source: str) -> Column:
    coordinates = F.concat_ws("/", "topic", "partition", "offset")
    return ids.uuid5_column(F.lit(source), F.coalesce(F.col(IDENTITY), coordinates))
