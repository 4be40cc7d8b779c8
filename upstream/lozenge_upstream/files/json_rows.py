"""Rows of a table as JSON objects, which mappings read.

Numbers are written with all of their digits, decimals and binary values as text: a decimal in its scale, bytes in
base64. Times are ISO 8601, with "Z" where the column has a zone. A null is `null`. What JSON cannot hold, NaN and the
infinities, is a text.
"""

import base64
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = "pa.Array[Any]"
_compute: Any = pc  # its stubs know neither texts among arrays nor zones
_encoder = msgspec.json.Encoder()
_TO_ESCAPE = r'["\\\x00-\x1f]'


def json_rows(rows: pa.RecordBatch) -> list[bytes]:
    """One JSON object per row, with the columns in their order. Raises ValueError for a text that is not UTF-8."""
    if not rows.num_columns:
        return [b"{}"] * rows.num_rows
    plain = _are_plain([column for column in rows.columns if _is_text(column.type)])
    parts: list[Any] = []
    between = "{"
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        head = f"{between}{_encoder.encode(name).decode()}:"
        between = ","
        if not plain or not _is_text(column.type):
            parts += [head, _json(column)]
        elif column.null_count:
            parts += [head, _surrounded(column.cast(pa.string()))]
        else:
            parts += [head + '"', column.cast(pa.string())]  # the quotes stand around it, so no copy of it has them
            between = '",'
    end = between.removesuffix(",") + "}"
    joined = _compute.binary_join_element_wise(*parts, end, "", null_handling="replace", null_replacement="null")
    return [*joined.cast(pa.binary()).to_pylist()]


def json_value(value: Any) -> bytes:
    """One value, such as a record, as JSON."""
    return _encoder.encode(_plain(value))


def texts(column: Column) -> list[bytes | None]:
    """The values as keys of records are written: a text as it is, others as in JSON without quotes."""
    if _is_text(column.type):
        return [*column.cast(pa.string()).cast(pa.binary()).to_pylist()]
    return [None if value is None else value.strip('"').encode() for value in _json(column).to_pylist()]


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _are_plain(columns: list[Column]) -> bool:
    """Whether no text has a character that JSON escapes: one search of all, since most files have none."""
    for column in columns:
        column.validate(full=True)  # a file may hold any bytes
    if not columns:
        return True
    joined = _compute.binary_join_element_wise(*(c.cast(pa.string()) for c in columns), "", null_handling="skip")
    return not _compute.any(_compute.match_substring_regex(joined, _TO_ESCAPE)).as_py()


def _json(column: Column) -> Column:
    """The values as JSON; null where they are null."""
    return _way(column.type)(column)


def _way(kind: pa.DataType) -> Callable[[Column], Column]:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return lambda column: column.cast(pa.string())
    if _is_text(kind):
        return _quoted
    if pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return lambda column: _surrounded(column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        return _moments
    if pa.types.is_floating(kind):
        return _floats
    if pa.types.is_dictionary(kind):
        return _decoded
    return _one_by_one


def _decoded(column: Any) -> Column:
    return _json(column.dictionary_decode())


def _quoted(column: Column) -> Column:
    return _surrounded(column.cast(pa.string())) if _are_plain([column]) else _one_by_one(column)


def _surrounded(column: Column) -> Column:
    found: Column = _compute.binary_join_element_wise('"', column, '"', "")
    return found


def _moments(column: Column) -> Column:
    zone = column.type.tz
    utc = column if zone is None else column.cast(pa.timestamp(column.type.unit, "UTC"))
    return _surrounded(_compute.strftime(utc, "%Y-%m-%dT%H:%M:%S" + ("Z" if zone else "")))


def _floats(column: Column) -> Column:
    written = column.cast(pa.string())
    found: Column = _compute.if_else(_compute.is_finite(column), written, _surrounded(written))
    return found


def _one_by_one(column: Column) -> Column:
    found = [None if value is None else json_value(value).decode() for value in column.to_pylist()]
    return pa.array(found, pa.string())


def _plain(value: Any) -> Any:
    """Nested values as the columns are; msgspec writes decimals as texts, times as ISO 8601, bytes as base64."""
    match value:
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    return value
