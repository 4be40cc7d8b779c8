"""The columns of an archived topic: the platform's own, and those of its records.

A record's fields keep their names and order. A field that is named as a column of the platform gets a `_` at its end.
The platform's columns are the first: a table has statistics of its first columns only, and files are found by these.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

from lozenge.errors import SchemaError
from lozenge.streams.fields import ARRAY, DATE, DECIMAL, ENUM, MAP, RECORD, TIME

PARTITION, OFFSET, TIMESTAMP, INGESTED_AT, DAY, BUCKET = (
    "partition",
    "offset",
    "timestamp",
    "ingested_at",
    "day",
    "bucket",
)
TIME_TYPE: Any = pa.timestamp("us", tz="UTC")
PLATFORM = pa.schema(
    [
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIMESTAMP, TIME_TYPE),
        (INGESTED_AT, TIME_TYPE),
        (DAY, pa.date32()),
        (BUCKET, pa.int32()),
    ]
)
"""The coordinates of the record, its Kafka timestamp, when it was archived, and where its row is kept.

`day` is the date of the Kafka timestamp in UTC, `bucket` is `crc32(key)` modulo the buckets of the table.
"""
PARTITIONED_BY = [DAY, BUCKET]
ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    (DAY, "ascending"),
    (BUCKET, "ascending"),
    (PARTITION, "ascending"),
    (OFFSET, "ascending"),
]
"""In which the rows of a commit are written: in a file they are in the order of the topic."""
RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))),
    ]
)
"""The columns of records that are kept as they are: of dead letters, which may be anything."""
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    ENUM: pa.string(),
    TIME: TIME_TYPE,
    DATE: pa.date32(),
}


def column_name(field: str) -> str:
    """The column of a record's field; upper and lower case are one for readers."""
    return f"{field}_" if field.lower() in PLATFORM.names else field


def columns_of(record: Mapping[str, Any]) -> pa.Schema:
    """The platform's columns, then those of an Avro record; raises SchemaError for a type that has none."""
    found = [pa.field(column_name(each["name"]), _type(each["type"])) for each in record["fields"]]
    return pa.schema([*PLATFORM, *found])


def raw_columns() -> pa.Schema:
    """The platform's columns, then those of records that are kept as they are."""
    return pa.schema([*PLATFORM, *RAW])


def evolution_problems(present: pa.Schema, wanted: pa.Schema) -> list[str]:
    """Why rows of the columns `wanted` do not fit a table with those of `present`; columns may come and go."""
    return list(_differences(present, wanted, ""))


def grows(present: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether the columns `wanted` have a column, or a field within one, that a table with `present` has not."""
    return not _paths(wanted, "") <= _paths(present, "")


def rows_of(decoded: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows of a commit out of decoded records: exactly these columns, in the order of the topic within a file."""
    return decoded.select(columns.names).cast(columns).sort_by(ORDER)


def _type(declared: Any) -> pa.DataType:
    if isinstance(declared, list):
        kinds = [each for each in declared if each != "null"]
        if len(kinds) != 1:
            raise SchemaError(f"archiving a record: a union of {len(kinds)} types has no column type")
        return _type(kinds[0])
    if isinstance(declared, str):
        declared = {"type": declared}
    kind = declared.get("logicalType", declared["type"])
    if isinstance(kind, dict | list):
        return _type(kind)
    if kind == RECORD:
        return pa.struct([pa.field(each["name"], _type(each["type"])) for each in declared["fields"]])
    if kind == ARRAY:
        return pa.list_(pa.field("element", _type(declared["items"])))
    if kind == MAP:
        return pa.map_(pa.string(), _type(declared["values"]))
    if kind == DECIMAL:
        return pa.decimal128(declared["precision"], declared.get("scale", 0))
    if kind not in _PLAIN:
        raise SchemaError(f"archiving a record: the type {kind} has no column type")
    return _PLAIN[kind]


def _paths(fields: Iterable[Any], path: str) -> set[str]:
    found = set[str]()
    for field in fields:
        found.add(here := f"{path}.{field.name}")
        kind = field.type
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = kind.item_type if pa.types.is_map(kind) else kind.value_type
        if pa.types.is_struct(kind):
            found |= _paths(kind, here)
    return found


def _differences(present: Iterable[Any], wanted: Iterable[Any], path: str) -> Iterator[str]:
    have = {field.name: field.type for field in present}
    for field in wanted:
        if field.name in have:
            yield from _difference(have[field.name], field.type, path + field.name)


def _difference(present: pa.DataType, wanted: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(present) and pa.types.is_struct(wanted):
        yield from _differences(present, wanted, f"{path}.")
    elif pa.types.is_list(present) and pa.types.is_list(wanted):
        yield from _difference(present.value_type, wanted.value_type, path)
    elif pa.types.is_map(present) and pa.types.is_map(wanted):
        yield from _difference(present.item_type, wanted.item_type, path)
    elif present != wanted:
        yield f"{path} is {present} in the table and {wanted} in the records"
