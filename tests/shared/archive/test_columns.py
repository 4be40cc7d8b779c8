from decimal import Decimal

import pyarrow as pa
import pytest

from lozenge.archive.columns import PLATFORM, columns_of, evolution_problems, grows
from lozenge.contracts.schemas import packaged
from lozenge.errors import SchemaError
from tests.streams import AUTH

NESTED = {
    "fields": [
        {"name": "plain", "type": "string"},
        {"name": "optional", "type": ["null", "long"]},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"]}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}]},
            },
        },
        {"name": "labels", "type": {"type": "map", "values": "double"}},
        {"name": "Day", "type": "float"},
    ]
}


def test_each_type_of_a_stream_has_a_column_and_names_of_the_platform_stay_its_own() -> None:
    found = columns_of(NESTED)
    assert found.names[: len(PLATFORM)] == PLATFORM.names
    assert [(f.name, str(f.type)) for f in found][len(PLATFORM) :] == [
        ("plain", "string"),
        ("optional", "int64"),
        ("amount", "decimal128(18, 4)"),
        ("at", "timestamp[us, tz=UTC]"),
        ("on", "date32[day]"),
        ("kind", "string"),
        ("items", "list<element: struct<n: int32>>"),
        ("labels", "map<string, double>"),
        ("Day_", "float"),
    ]


def test_every_contract_and_stream_has_columns() -> None:
    for schema in (*packaged(), AUTH.event_schema):
        assert len(columns_of(schema.definition)) == len(PLATFORM) + len(schema.definition["fields"])


def test_columns_may_come_and_go_but_not_change() -> None:
    before = columns_of(NESTED)
    fields = NESTED["fields"]
    other = columns_of({"fields": [{"name": "plain", "type": "long"}, *fields[1:]]})
    fewer = columns_of({"fields": fields[1:]})
    inner = {"type": "record", "name": "I", "fields": [{"name": "n", "type": "long"}, {"name": "m", "type": "int"}]}
    nested = columns_of({"fields": [{"name": "items", "type": {"type": "array", "items": inner}}]})
    assert evolution_problems(before, fewer) == evolution_problems(fewer, before) == []
    assert evolution_problems(before, other) == ["plain is string in the table and int64 in the records"]
    assert evolution_problems(before, nested) == ["items.n is int32 in the table and int64 in the records"]
    assert grows(fewer, before)
    assert grows(before, nested)
    assert not grows(before, fewer)


def test_a_union_of_several_types_has_no_column() -> None:
    with pytest.raises(SchemaError, match="union of 2 types"):
        columns_of({"fields": [{"name": "either", "type": ["string", "long"]}]})


def test_an_amount_keeps_every_digit() -> None:
    kind = columns_of(NESTED).field("amount").type
    assert pa.array([Decimal("123456789012.3456")], kind).to_pylist() == [Decimal("123456789012.3456")]
