"""Values of databases and lakes as texts of a declared type, and back without loss."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lozenge.platform_tables.column_types import cast, column_types
from lozenge_upstream.tables.row_texts import texts_of

EAST = timezone(timedelta(hours=2))


def kind_of(name: str) -> pa.DataType:
    return column_types(f"x {name}")["x"]


@pytest.mark.parametrize(
    ("kind", "values", "read"),
    [
        ("string", ["0042", None, UUID(int=7)], ["0042", None, str(UUID(int=7))]),
        ("int", [7, "8", None, Decimal(9)], [7, 8, None, 9]),
        ("bigint", [2**62, True - 2], [2**62, -1]),
        ("double", [0.1, 1e300, 3, Decimal("2.5"), float("inf")], [0.1, 1e300, 3.0, 2.5, float("inf")]),
        ("boolean", [True, 0, "true"], [True, False, True]),
        ("decimal(18,4)", [Decimal("1.5"), "2", 3, 0.25], [Decimal("1.5"), Decimal(2), Decimal(3), Decimal("0.25")]),
        ("date", [date(2026, 3, 1), "2026-03-02"], [date(2026, 3, 1), date(2026, 3, 2)]),
        (
            "timestamp",
            [datetime(2026, 3, 1, 14, tzinfo=EAST), datetime(2026, 3, 1, 12), "2026-03-01 12:00:00.000001"],
            [datetime(2026, 3, 1, 12, 0, 0, n, tzinfo=UTC) for n in (0, 0, 1)],
        ),
    ],
)
def test_a_value_is_read_as_it_was(kind: str, values: list[Any], read: list[Any]) -> None:
    texts, wrong = texts_of(values, kind_of(kind))
    assert wrong == {}
    assert cast(pa.array(texts, pa.string()), kind_of(kind)).to_pylist() == read
    assert texts_of(texts, kind_of(kind)) == (texts, {}), "equal values have equal texts"


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("string", 42, "'42' (int), which is no string"),
        ("int", 1.5, "'1.5' (str), which is no int"),
        ("int", 2**40, "which is no int"),
        ("decimal(4,2)", Decimal("1.234"), "which is no decimal(4,2)"),
        ("date", "tomorrow", "'tomorrow' (str), which is no date"),
        ("boolean", b"1", "(bytes), which is no boolean"),
        ("double", "4000000000000002", ""),
        ("date", "4000000000000002", "'400000******0002'"),
    ],
)
def test_a_value_of_another_type_is_named_without_card_numbers(kind: str, value: Any, why: str) -> None:
    _, wrong = texts_of([None, value], kind_of(kind))
    assert why in wrong.get(1, "")
    assert bool(wrong) is bool(why)
