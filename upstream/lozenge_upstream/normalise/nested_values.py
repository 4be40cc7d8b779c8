"""Records, lists and maps of an event: a value of several parts, each of which is accepted or has its problem.

A problem names its field by the names that lead there: `missing:device.os`. Of equal problems in a list one is kept.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts.card_numbers import has_card_number_column
from lozenge.contracts.money import minor_digits_column
from lozenge.streams.fields import Field
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise.field_types import sql_type
from lozenge_upstream.normalise.transform_result import Made, Row, let

Make = Callable[[d.Transform, Row], Made]
_NAME = r"^[^\p{Cc}]{1,128}$"


def record(spec: d.RecordOf, row: Row, make: Make) -> Made:
    """A struct with the fields of the record; absent where it may be and the raw record has nothing of it."""
    field = _field(row)
    parts = parts_of(spec, row)
    needed, depth = needs(parts.values(), len(row.scopes)), len(row.scopes)
    absent = _nothing_of(spec, row) if field.optional else None

    def part(name: str, digits: Mapping[d.Place, Column]) -> Column:
        inner, of = parts[name]
        return _part(inner, replace(of, minor_digits={**row.minor_digits, **digits}), make, needed.get(name)).alias(
            name
        )

    def with_amounts(currencies: Column) -> Column:
        digits = (minor_digits_column(currencies[name]["value"]).alias(name) for name in needed)

        def all_parts(digits: Column) -> Column:
            known = {(depth, name): digits[name] for name in needed}
            return F.struct(*(currencies[n].alias(n) if n in needed else part(n, known) for n in parts))

        return let(F.struct(*digits), all_parts)

    def checked(found: Column) -> Column:
        made = {name: found[name]["value"] for name in parts}
        nothing = {each.name: F.lit(None).cast(sql_type(each.type)) for each in field.fields}
        whole = F.struct(*(column.alias(name) for name, column in (nothing | made).items()))
        return _checked(whole, F.flatten(F.array(*(found[name]["problems"] for name in parts))), absent)

    first = F.struct(*(part(name, {}) for name in (needed or parts)))
    return _made(let(let(first, with_amounts) if needed else first, checked), absent)


def parts_of(spec: d.RecordOf, row: Row) -> dict[str, tuple[d.Transform, Row]]:
    """The transform of each field of a record, and the row that it looks at, in the order of the schema."""
    field = _field(row)
    scopes = (*row.scopes, tuple(field.fields))
    return {
        each.name: (spec.fields[each.name], replace(row, field=each, name=f"{row.name}.{each.name}", scopes=scopes))
        for each in field.fields
        if each.name in spec.fields
    }


def needs(parts: Iterable[tuple[d.Transform, Row]], depth: int) -> dict[str, Column]:
    """Whether a raw record has amounts in the currency that a field of the record `depth` has, by that field.

    A currency may be absent only if the amounts in it are.
    """
    found: dict[str, Column] = {}
    for spec, row in parts:
        places = d.currencies(spec, row.field, row.scopes) if row.field is not None else ()
        for at, name in dict.fromkeys(places):
            if at == depth:
                has = _has_amount(spec, row, (at, name))
                found[name] = found[name] | has if name in found else has
    return found


def _has_amount(spec: d.Transform, row: Row, currency: d.Place) -> Column:
    """Whether the raw record has one in this currency that the transform makes, itself or within; never null."""
    field = _field(row)
    if currency not in d.currencies(spec, field, row.scopes):
        return F.lit(False)
    if isinstance(spec, d.RecordOf):
        return reduce(or_, (_has_amount(*part, currency) for part in parts_of(spec, row).values()))
    if isinstance(spec, d.Container):
        raw, step = row.container(spec.path), 0 if isinstance(spec, d.ListOf) else d.ANY_KEY

        def has(element: Column) -> Column:
            return _has_amount(spec.of, _element(spec, row, step, element), currency)

        return F.coalesce(F.exists(raw if step == 0 else F.map_values(raw), has), F.lit(False))
    return row.has(spec.required)


def list_of(spec: d.ListOf, row: Row, make: Make) -> Made:
    """An array of what each element of a raw list becomes."""
    raw = row.container(spec.path)
    absent = raw.isNull() if _field(row).optional else None

    def one(element: Column) -> Column:
        return _of_element(spec, row, 0, element, make)

    def checked(parts: Column) -> Column:
        return _checked(F.transform(parts, lambda part: part["value"]), _problems(parts, row), absent)

    return _made(let(F.transform(raw, one), checked), absent)


def map_of(spec: d.MapOf, row: Row, make: Make) -> Made:
    """A map of what each value of a raw object becomes. A name is a text without a card number, and is there once."""
    raw = row.container(spec.path)
    absent = raw.isNull() if _field(row).optional else None
    names = F.map_keys(raw)
    odd = F.exists(names, lambda name: ~name.rlike(_NAME)) | (F.size(F.array_distinct(names)) < F.size(names))
    of_names = F.when(odd, _one(f"format:{row.name}")).when(
        F.exists(names, has_card_number_column), _one(f"pan:{row.name}")
    )

    def one(_: Column, element: Column) -> Column:
        return _of_element(spec, row, d.ANY_KEY, element, make)

    def checked(parts: Column) -> Column:
        problems = of_names.otherwise(_problems(F.map_values(parts), row))
        return _checked(F.transform_values(parts, lambda _, part: part["value"]), problems, absent)

    return _made(let(F.transform_values(raw, one), checked), absent)


def _field(row: Row) -> Field:
    assert row.field is not None  # only a field of the stream is a container, see `field_checks`
    return row.field


def _of_element(spec: d.Container, row: Row, step: d.Step, element: Column, make: Make) -> Column:
    """What an element of a list or a map becomes. Each text that it is made of is read once, however often it is used.

    A text is some fifty expressions, and a transform uses it ten times: without this a plan takes minutes.
    """
    found = _element(spec, row, step, element)
    names = {path: f"text_{number}" for number, path in enumerate(dict.fromkeys(spec.of.paths))}

    def made(texts: Column) -> Column:
        return _part(spec.of, replace(found, text=lambda path: texts[names[path]]), make)

    return let(F.struct(*(found.text(path).alias(name) for path, name in names.items())), made)


def _element(spec: d.Container, row: Row, step: d.Step, element: Column) -> Row:
    """The row for an element of a list or a map: another record to read, at the same place of the event."""
    read = row.within(spec.path, step, element)
    return replace(row, field=_field(row).element, text=read.text, container=read.container, within=read.within)


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


def _part(spec: d.Transform, row: Row, make: Make, needed: Column | None = None) -> Column:
    """A struct of the value of one field, null where it has none, and its problems."""
    made, optional = make(spec, row), _field(row).optional
    if made.checked is not None:
        return made.checked
    present = row.has(spec.required)
    refused = F.array_compact(F.array(made.problem(row.name, present)))

    def checked(value: Column) -> Column:
        good = made.settles(value, present, optional=optional, needed=needed)
        problems = F.when(good, F.array().cast("array<string>")).otherwise(refused)
        return F.struct(F.when(made.accepts(value), value).alias("value"), problems.alias("problems"))

    return let(made.value, checked)


def _nothing_of(spec: d.RecordOf, row: Row) -> Column | None:
    """Whether the raw record has nothing that the record is made of; None where it is made of nothing raw."""
    texts = [~row.has([path]) for path in dict.fromkeys(spec.paths)]
    holders = [row.container(path).isNull() for path in dict.fromkeys(d.containers(spec))]
    return reduce(and_, [*texts, *holders]) if texts or holders else None


def _problems(parts: Column, row: Row) -> Column:
    """Those of the elements, each once; where there is no array, that it is missing."""
    found = F.array_distinct(F.flatten(F.transform(parts, lambda part: part["problems"])))
    return F.coalesce(found, _one(f"missing:{row.name}"))


def _one(problem: str) -> Column:
    return F.array(F.lit(problem))
