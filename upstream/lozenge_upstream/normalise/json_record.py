"""The JSON of a raw record as texts, one for each path of a mapping; and whether it is one whole object."""

import json
from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from lozenge_upstream.normalise.declarations import ANY_KEY, Step, Steps, any_element, steps

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE = rf"(?<!\\)(\\\\)*({_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
_STRICT = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "_broken",
}


class JsonRecord:
    """The columns that read a record whose raw fields are at the ends of `ways`.

    Of the `numbers` among them a JSON number keeps all of its digits. The frame has `value`, the record's bytes,
    `offset`, and from `parse` on `_parsed`.
    """

    def __init__(self, ways: Collection[Steps], numbers: Collection[Steps]) -> None:
        self._paths = list(ways)
        self._numbers = {*numbers}

    def parse(self) -> Column:
        """The record as the first of two in an array, the second being ours: it is read only if the first ended well.

        So another value, a rest or a bracket too many is seen, not skipped. What is broken within leaves its text in
        `_broken`; else Spark would give the fields that it could read.
        """
        return self._read(self._object(self._paths, ()))

    def is_record(self) -> Column:
        """Whether what was parsed is one object, and each of its containers what the paths say; never null."""
        return _is_whole(F.col("_parsed"))

    def other_containers(self) -> Column:
        """Of a record that is no such one: the outermost fields that a path leads into and that are no such container.

        An array of names; empty where the record is no JSON object at all.
        """
        containers = {path[0]: [each for each in self._paths if each[0] == path[0]] for path in self._paths if path[1:]}
        loose = StructType([StructField(str(name), StringType()) for name in dict.fromkeys(p[0] for p in self._paths)])
        read = self._read(loose)
        record = F.get(read["_records"], F.lit(0))
        wrong = [
            F.when(self._is_other(record[str(name)], paths), F.lit(str(name))) for name, paths in containers.items()
        ]
        if not wrong:
            return F.array().cast("array<string>")
        return F.when(_is_whole(read), F.array_compact(F.array(*wrong))).otherwise(F.array().cast("array<string>"))

    def text(self, path: str) -> Column:
        """The trimmed text of the value at `path`; null where it is absent, JSON where it is a container."""
        return self.text_within(F.get("_parsed._records", F.lit(0)), (), path)

    def container(self, path: str) -> Column:
        """The array or the map of the list or object at `path`; null where it is absent."""
        return self.container_within(F.get("_parsed._records", F.lit(0)), path)

    def container_within(self, value: Column, path: str) -> Column:
        """The same from a value within the record on."""
        return reduce(_step, steps(path), value)

    def text_within(self, value: Column, place: Steps, path: str) -> Column:
        """The same as `text` from a value within the record on, to which `place` leads."""
        way = (*place, *any_element(path))
        field = reduce(_step, steps(path), value)
        if way in self._numbers:
            # A number with an exponent, or too long for a decimal, has been rounded to a double.
            name = next(step for step in reversed(way) if isinstance(step, str))
            rounded = F.schema_of_variant(field) == "DOUBLE"
            field = F.when(rounded, _with_exponent(field, name)).otherwise(F.try_variant_get(field, "$", "string"))
        return F.trim(field)

    def is_number(self, way: Steps) -> bool:
        """Whether the value at the end of `way` keeps all digits of a JSON number."""
        return way in self._numbers

    def _read(self, record: StructType) -> Column:
        text = F.col("value").cast("string")
        record_text = F.when(text.startswith("\ufeff"), F.substr(text, F.lit(2))).otherwise(text)
        wrapped = F.concat(F.lit('{"_records":['), record_text, F.lit(',{"_end":"'), _end(), F.lit('"}]}'))
        records = StructType([*record.fields, StructField("_end", StringType())])
        schema = StructType().add("_records", ArrayType(records)).add("_broken", StringType())
        return F.when(F.is_valid_utf8(text) & ~has_lone_surrogate(text), F.from_json(wrapped, schema, _STRICT))

    def _is_other(self, text: Column, paths: list[Steps]) -> Column:
        """Whether the container `text` cannot be read along `paths`."""
        inner = StructType().add("_it", self._type((paths[0][0],), [path[1:] for path in paths]))
        inner = inner.add("_broken", StringType())
        read = F.from_json(F.concat(F.lit('{"_it":'), text, F.lit("}")), inner, _STRICT)
        return text.isNotNull() & read["_broken"].isNotNull()

    def _object(self, paths: list[Steps], prefix: Steps) -> StructType:
        """Texts, except for the numbers: only as a variant does a JSON number keep all of its digits."""
        children: dict[str, list[Steps]] = {}
        for name, *rest in paths:
            children.setdefault(str(name), []).extend([tuple(rest)] if rest else [])
        return StructType([StructField(n, self._type((*prefix, n), below)) for n, below in children.items()])

    def _type(self, way: Steps, below: list[Steps]) -> DataType:
        if not below:
            return VariantType() if way in self._numbers else StringType()
        if isinstance(below[0][0], int):
            return ArrayType(self._type((*way, 0), [path[1:] for path in below if path[1:]]))
        if below[0][0] is ANY_KEY:
            return MapType(StringType(), self._type((*way, ANY_KEY), [path[1:] for path in below if path[1:]]))
        return self._object(below, way)


def has_lone_surrogate(text: Column) -> Column:
    """Whether it escapes half of a pair; records without such an escape, nearly all, cost two searches."""
    return (text.contains(r"\ud") | text.contains(r"\uD")) & text.rlike(_LONE)


def _step(value: Column, step: Step) -> Column:
    return F.get(value, F.lit(step)) if isinstance(step, int) else value.getItem(step)


def _is_whole(parsed: Column) -> Column:
    ended = F.get(parsed["_records"], F.lit(1))["_end"] == _end()
    record = F.get(parsed["_records"], F.lit(0))
    whole = parsed["_broken"].isNull() & (F.size(parsed["_records"]) == 2) & ended & record.isNotNull()
    return F.coalesce(whole, F.lit(False))


def _end() -> Column:
    """What a record cannot have copied: its own offset."""
    return F.col("offset").cast("string")


def _with_exponent(number: Column, name: str) -> Column:
    """The number with an exponent that the record has under this name, if that is the `number`; no number else."""
    member = rf"\Q{json.dumps(name, ensure_ascii=False)}\E\s*:\s*(-?[0-9.]+[eE][+-]?[0-9]+)"
    written = F.regexp_extract(F.col("value").cast("string"), member, 1)
    same = written.try_cast("double") == F.try_variant_get(number, "$", "double")
    return F.when(same, written).otherwise("inexact")
