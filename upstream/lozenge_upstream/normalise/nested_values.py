"""Records, lists and maps of an event: a value of several parts, each of which is accepted or has its problem.

A problem names its field by the names that lead there: `missing:device.os`. Of equal problems in a list one is kept.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts.card_numbers import has_card_number_column
from lozenge.streams.fields import Field
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise.field_types import sql_type
from lozenge_upstream.normalise.transform_result import Made, Row, let

Make = Callable[[d.Transform, Row], Made]
_NAME = r"^[^\p{Cntrl}]{1,128}$"


def record(spec: d.RecordOf, row: Row, make: Make) -> Made:
    """A struct with the fields of the record; absent where it may be and the raw record has nothing of it."""
    field = _field(row)
    parts = [
        (each, _part(spec.fields[each.name], _inner(row, each, f"{row.name}.{each.name}"), make))
        for each in field.fields
        if each.name in spec.fields
    ]
    absent = _nothing_of(spec, row) if field.optional else None

    def checked(found: Column) -> Column:
        made = {each.name: found[each.name]["value"] for each, _ in parts}
        nothing = {each.name: F.lit(None).cast(sql_type(each.type)) for each in field.fields}
        whole = F.struct(*(column.alias(name) for name, column in (nothing | made).items()))
        return _checked(whole, F.flatten(F.array(*(found[each.name]["problems"] for each, _ in parts))), absent)

    return _made(let(F.struct(*(part.alias(each.name) for each, part in parts)), checked), absent)


def list_of(spec: d.ListOf, row: Row, make: Make) -> Made:
    """An array of what each element of a raw list becomes."""
    field, raw = _field(row), row.container(spec.path)
    absent = raw.isNull() if field.optional else None

    def one(element: Column) -> Column:
        return _part(spec.of, _inner(row.within(spec.path, 0, element), field.element, row.name), make)

    def checked(parts: Column) -> Column:
        return _checked(F.transform(parts, lambda part: part["value"]), _problems(parts, row), absent)

    return _made(let(F.transform(raw, one), checked), absent)


def map_of(spec: d.MapOf, row: Row, make: Make) -> Made:
    """A map of what each value of a raw object becomes. A name is a text without a card number, and is there once."""
    field, raw = _field(row), row.container(spec.path)
    absent = raw.isNull() if field.optional else None
    names = F.map_keys(raw)
    odd = F.exists(names, lambda name: ~name.rlike(_NAME)) | (F.size(F.array_distinct(names)) < F.size(names))
    of_names = F.when(odd, _one(f"format:{row.name}")).when(
        F.exists(names, has_card_number_column), _one(f"pan:{row.name}")
    )

    def one(_: Column, element: Column) -> Column:
        return _part(spec.of, _inner(row.within(spec.path, d.ANY_KEY, element), field.element, row.name), make)

    def checked(parts: Column) -> Column:
        problems = of_names.otherwise(_problems(F.map_values(parts), row))
        return _checked(F.transform_values(parts, lambda _, part: part["value"]), problems, absent)

    return _made(let(F.transform_values(raw, one), checked), absent)


def _field(row: Row) -> Field:
    assert row.field is not None  # only a field of the stream is a container, see `field_checks`
    return row.field


def _inner(row: Row, field: Field, name: str) -> Row:
    return replace(row, field=field, name=name, minor_digits=None, token_prefix="")


def _checked(value: Column, problems: Column, absent: Column | None) -> Column:
    """A struct of the value, null where there are problems, and of these; none of both where `absent` holds."""
    none = F.array().cast("array<string>")
    if absent is not None:
        problems = F.when(absent, none).otherwise(problems)

    def both(problems: Column) -> Column:
        good = F.size(problems) == 0
        return F.struct(
            F.when(good if absent is None else good & ~absent, value).alias("value"), problems.alias("problems")
        )

    return let(problems, both)


def _made(checked: Column, absent: Column | None) -> Made:
    return Made(checked["value"], F.lit(None).cast("string"), absent=absent, checked=checked)


def _part(spec: d.Transform, row: Row, make: Make) -> Column:
    """A struct of the value of one field, null where it has none, and its problems."""
    made, field = make(spec, row), _field(row)
    if made.checked is not None:
        return made.checked
    present = reduce(and_, (_text(row, path) != "" for path in spec.required), F.lit(True))
    kind = F.when(~present, "missing").otherwise(made.fault)
    refused = F.array(F.concat(kind, F.lit(f":{row.name}")))

    def checked(value: Column) -> Column:
        accepted = made.accepts(value)
        good = accepted | ~present if field.optional else accepted
        good = good if made.absent is None else good | made.absent
        problems = F.when(good, F.array().cast("array<string>")).otherwise(refused)
        return F.struct(F.when(accepted, value).alias("value"), problems.alias("problems"))

    return let(made.value, checked)


def _nothing_of(spec: d.RecordOf, row: Row) -> Column | None:
    """Whether the raw record has nothing that the record is made of; None where it is made of nothing raw."""
    texts = [_text(row, path) == "" for path in dict.fromkeys(spec.paths)]
    holders = [row.container(path).isNull() for path in dict.fromkeys(d.containers(spec))]
    return reduce(and_, [*texts, *holders]) if texts or holders else None


def _text(row: Row, path: str) -> Column:
    return F.coalesce(row.text(path), F.lit(""))


def _problems(parts: Column, row: Row) -> Column:
    """Those of the elements, each once; where there is no array, that it is missing."""
    found = F.array_distinct(F.flatten(F.transform(parts, lambda part: part["problems"])))
    return F.coalesce(found, _one(f"missing:{row.name}"))


def _one(problem: str) -> Column:
    return F.array(F.lit(problem))
