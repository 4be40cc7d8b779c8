"""A sample's values are compared in the type of their field, and what does not fit one is refused with what does."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lozenge.streams.fields import Field, fields_of
from lozenge_upstream.stream_samples.expected_values import FieldDifference, differences, expected_value

KINDS = {
    field.name: field
    for field in fields_of(
        {
            "fields": [
                {"name": "text", "type": "string"},
                {"name": "flag", "type": "boolean"},
                {"name": "whole", "type": "long"},
                {"name": "real", "type": "double"},
                {"name": "short", "type": "float"},
                {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {"name": "blob", "type": "bytes"},
                {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["idle"]}},
                {
                    "name": "shop",
                    "type": {
                        "type": "record",
                        "name": "Shop",
                        "fields": [
                            {"name": "town", "type": "string"},
                            {"name": "sizes", "type": {"type": "array", "items": "long"}},
                        ],
                    },
                },
                {"name": "tags", "type": {"type": "map", "values": "double"}},
            ]
        }
    )
}


@pytest.mark.parametrize(
    ("field", "written", "value"),
    [
        ("text", "a", "a"),
        ("mode", "idle", "idle"),
        ("flag", True, True),
        ("whole", 7, 7),
        ("real", 7, 7.0),
        ("short", 0.1, 0.10000000149011612),
        ("amount", "12.50", Decimal("12.5")),
        ("amount", 12.5, Decimal("12.5")),
        ("amount", -3, Decimal(-3)),
        ("at", datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("at", "2026-03-01T13:00:00+01:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("day", date(2026, 3, 1), date(2026, 3, 1)),
        ("day", "2026-03-01", date(2026, 3, 1)),
        ("blob", "00ff", b"\x00\xff"),
        ("shop", {"sizes": [1]}, {"sizes": [1]}),
        ("tags", {"a": 1}, {"a": 1.0}),
    ],
)
def test_a_value_is_read_in_the_type_of_its_field(field: str, written: Any, value: Any) -> None:
    assert expected_value(KINDS[field], written) == value


@pytest.mark.parametrize(
    ("field", "written", "problem"),
    [
        ("text", 7, "text is a text, and not 7"),
        ("text", datetime(2026, 3, 1, 12, tzinfo=UTC), "text is a text, and not 2026-03-01T12:00:00"),
        ("flag", "true", "flag is true or false, and not 'true'"),
        ("whole", True, "whole is a number"),
        ("amount", "twelve", 'amount is a decimal, such as "12.50", and not'),
        ("amount", False, "amount is a decimal"),
        ("at", "2026-03-01T13:00:00", "has no offset: end it with Z"),
        ("at", datetime(2026, 3, 1), "has no offset"),
        ("at", "soon", "at is a time, such as"),
        ("day", datetime(2026, 3, 1), "day is a date"),
        ("blob", "xy", "bytes in hexadecimal digits"),
        ("shop", {"street": "x"}, "shop has no field street; it has town, sizes"),
        ("shop", {"sizes": 1}, "sizes is a list, and not 1"),
        ("tags", [1], "tags is a map"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_fits(field: str, written: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("[", r"\[")):
        expected_value(KINDS[field], written)


def found(field: Field, expected: Any, got: Any) -> list[FieldDifference]:
    return list(differences(field, expected, got))


def test_of_a_record_only_the_fields_that_are_named_are_compared() -> None:
    got = {"town": "Bern", "sizes": [1, 2]}
    assert found(KINDS["shop"], {"town": "Bern"}, got) == []
    assert found(KINDS["shop"], {"town": "Basel", "sizes": [1, 3]}, got) == [
        FieldDifference("shop.town", "Basel", "Bern"),
        FieldDifference("shop.sizes[1]", 3, 2),
    ]
    assert found(KINDS["shop"], {"town": "Bern"}, None) == [FieldDifference("shop", {"town": "Bern"}, None)]


def test_a_list_and_a_map_are_compared_as_a_whole() -> None:
    assert found(KINDS["shop"], {"sizes": [1]}, {"sizes": [1, 2]}) == [FieldDifference("shop.sizes", [1], [1, 2])]
    assert found(KINDS["tags"], {"a": 1.0}, {"a": 1.0, "b": 2.0}) == [
        FieldDifference("tags", {"a": 1.0}, {"a": 1.0, "b": 2.0})
    ]
    assert found(KINDS["tags"], {"a": 1.0}, {"a": 2.0}) == [FieldDifference("tags.a", 1.0, 2.0)]
