"""Rows in place of a reference table are those of a declared one, which is checked before Spark starts."""

from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.testing import with_manifest
from lozenge.testing.runner import case_of
from lozenge.testing.table_rows import complete

JOINED = with_manifest(
    Detector(lambda events, settings, tables: events, settings=Settings),
    tables={
        "limits": {"path": "limits.csv", "columns": "mcc string, mcc_limit decimal(18,4)"},
        "cards": {"path": "c"},
        "known": {"path": "known.csv", "columns": "mcc string NOT NULL, note string"},
        "blocked": {"list": "blocked_cards"},
    },
)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"limit": []}, r"tables: limit is not declared; \[tool.lozenge.tables\] has limits, cards, known, blocked"),
        ({"limits": [{"mcc": "5411", "limit": 5}]}, "tables: limits has no column limit; it has mcc, mcc_limit"),
        ({"known": [{"mcc": "5411"}, {"note": "x"}]}, "tables: known has a row without mcc, which is NOT NULL"),
        ({"blocked": [{"card_id": "c"}]}, "tables: blocked has no column card_id; it has value, reason, author"),
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


def test_an_entry_of_a_list_has_a_reason_and_an_author_also_where_a_test_gives_none() -> None:
    table = JOINED.declaration.tables["blocked"]
    assert complete([{"value": "a"}, {"value": "b", "reason": "stolen"}], table) == [
        {"value": "a", "reason": "a test's", "author": "test"},
        {"value": "b", "reason": "stolen", "author": "test"},
    ]
    assert complete([{"mcc": "5411"}], JOINED.declaration.tables["limits"]) == [{"mcc": "5411"}]
