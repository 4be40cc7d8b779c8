"""The types of a stream's fields in Spark, and the values that a raw number or truth value has in them."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.streams.fields import ARRAY, DATE, DECIMAL, ENUM, MAP, RECORD, TEXT, TIME, Field
from lozenge_upstream.normalise.declarations import Boolean
from lozenge_upstream.normalise.transform_result import Made, fault

_PRIMITIVES = {"int": "int", "long": "bigint", "bytes": "binary", TEXT: "string"}
_SIMPLE = {TIME: "timestamp", DATE: "date", ENUM: "string"}
_WHOLE = r"^[+-]?[0-9]{1,20}$"
_REAL = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"


def sql_type(avro: Any) -> str:
    """The type as Spark's DDL."""
    if isinstance(avro, list):
        return sql_type(next(each for each in avro if each != "null"))
    if isinstance(avro, str):
        return _PRIMITIVES.get(avro, avro)
    kind = avro.get("logicalType", avro["type"])
    if kind == DECIMAL:
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    if kind == RECORD:
        inner = (f"`{each['name']}`:{sql_type(each['type'])}" for each in avro["fields"])
        return f"struct<{','.join(inner)}>"
    if kind == ARRAY:
        return f"array<{sql_type(avro['items'])}>"
    if kind == MAP:
        return f"map<string,{sql_type(avro['values'])}>"
    return _SIMPLE.get(kind) or sql_type(kind)


def number(text: Column, field: Field) -> Made:
    """A number in the type of the field. A decimal has no more places than its type, and loses none."""
    if field.kind == DECIMAL:
        precision, scale = field.type["precision"], field.type.get("scale", 0)
        whole = max(precision - scale, 1)
        fits = rf"^[+-]?0*[0-9]{{1,{whole}}}(\.[0-9]{{0,{scale}}}0*)?$"
        kind = (
            F.when(~text.rlike(r"^[+-]?[0-9]+(\.[0-9]+)?$"), "format")
            .when(text.rlike(rf"^[+-]?0*[0-9]{{1,{whole}}}(\.|$)"), "decimals")
            .otherwise("digits")
        )
        value = F.when(text.rlike(fits), text.try_cast(sql_type(field.type)))
        return Made(value, fault(text, kind))
    form = _WHOLE if field.kind in ("int", "long") else _REAL
    value = F.when(text.rlike(form), text.try_cast(sql_type(field.type)))
    if form is _REAL:  # of one that is too large a cast makes infinity
        value = F.when(F.abs(value) < F.lit(float("inf")), value)
    return Made(value, fault(text, F.when(text.rlike(form), "digits").otherwise("format")))


def boolean(text: Column, spec: Boolean) -> Made:
    """A truth value by the words for it."""
    value = F.when(text.isin(*spec.true), F.lit(True)).when(text.isin(*spec.false), F.lit(False))
    return Made(value, F.lit("unknown"))
