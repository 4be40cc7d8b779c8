"""Rows in place of a reference table are those of a declared one, which is checked before Spark starts."""

from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.testing import with_manifest
from lozenge.testing.runner import case_of

JOINED = with_manifest(
    Detector(lambda events, settings, tables: events, settings=Settings),
    tables={"limits": {"path": "limits.csv", "columns": "mcc string, mcc_limit decimal(18,4)"}, "cards": {"path": "c"}},
)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"limit": []}, r"tables: limit is not declared; \[tool.lozenge.tables\] has limits, cards"),
        ({"limits": [{"mcc": "5411", "limit": 5}]}, "tables: limits has no column limit; it has mcc, mcc_limit"),
        ({"cards": []}, "tables: cards has no rows, and a Parquet table has the columns of its rows"),
    ],
)
def test_rows_of_no_declared_table_are_refused(tables: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        case_of(JOINED, [{}], tables=tables)


def test_rows_may_lack_columns_and_a_csv_table_may_be_empty() -> None:
    tables: dict[str, Any] = {"limits": [{"mcc": "5411"}, {}], "cards": [{"card_id": "a"}]}
    assert case_of(JOINED, [{}], tables=tables).tables == tables
    assert case_of(JOINED, [{}], tables={"limits": []}).tables == {"limits": []}
