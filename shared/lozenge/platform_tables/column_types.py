"""What rows of a table are made of where they are texts: the types of columns, and texts as values of these types.

A CSV file has such rows, and so has the topic of a table of the platform.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lozenge import ddl

_CHUNK = 4_096
"""So many values are examined at once for those that do not fit."""
_TYPES: Mapping[ddl.DdlType, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SPELT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ZONE = r"(Z|[+-]\d\d:?\d\d)$"


def column_types(columns: str, holder: str = "CSV file") -> dict[str, pa.DataType]:
    """The Arrow type of each column of Spark DDL, such as "country string, most decimal(18,4)".

    Raises ValueError with every column that is no DDL or that no `holder` can have as texts.
    """
    try:
        declared = ddl.columns(columns)
    except ddl.DdlError as error:
        raise ValueError(f"columns: {error}") from error
    found = {name: arrow for name, kind in declared.items() if (arrow := _type(kind)) is not None}
    if wrong := ", ".join(name for name in declared if name not in found):
        raise ValueError(
            f"columns: no {holder} holds the type of {wrong}; types are {', '.join(map(str, _TYPES))}, decimal"
        )
    return found


def sql_name(kind: pa.DataType) -> str:
    """The type as a declaration spells it: the same for all that Spark reads as the same."""
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_dictionary(kind):
        return sql_name(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = (str(name) for name, known in _TYPES.items() if known == kind)
    return _SPELT.get(found := next(names, str(kind)), found)


def _type(kind: ddl.DdlType) -> pa.DataType | None:
    """The Arrow type; None for what is no text there. A text of a limited length is a text."""
    if not isinstance(kind, str):
        return None
    if decimal := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return pa.string() if kind.startswith(("char(", "varchar(")) else _TYPES.get(kind)


def cast(texts: Any, kind: pa.DataType) -> Any:
    """Raises ArrowInvalid if a text is no such value. A time without a zone is UTC."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return texts.cast(kind)
    zoned = pc.match_substring_regex(texts, _ZONE)
    null = pa.scalar(None, pa.string())
    aware = pc.if_else(zoned, texts, null).cast(kind)
    naive = pc.if_else(zoned, null, texts).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return pc.coalesce(aware, naive)


def misfits(texts: Sequence[str | None], kind: pa.DataType) -> Iterator[int]:
    """The places of the texts that are no such value."""
    for start in range(0, len(texts), _CHUNK):
        if not _fit(texts[start : start + _CHUNK], kind):
            yield from (at for at, text in enumerate(texts[start : start + _CHUNK], start) if not _fit([text], kind))


def _fit(texts: Sequence[str | None], kind: pa.DataType) -> bool:
    try:
        cast(pa.array(texts, pa.string()), kind)
    except pa.ArrowInvalid:
        return False
    return True
