"""A list as a table: its entries as they were written, none where there is no broker; the lookup checks its columns."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lozenge import ddl, listed
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.reference_lists import ListedEntries
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.detector.tables.topic_content import EmptyTopic
from lozenge.platform_tables.column_types import sql_name
from lozenge.protocol.list_entries import COLUMNS, ListEntry

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENTRIES = [ListEntry("b", "lost", "ann", NOW), ListEntry("a", "stolen", "bob", NOW, NOW)]


def test_entries_are_rows_in_the_order_of_their_values_with_the_declared_columns(tmp_path: Path) -> None:
    ListedEntries("cards").write({entry.value: entry for entry in ENTRIES}, tmp_path / "new")
    found = pq.read_table(tmp_path / "new")
    assert found.to_pylist() == [
        {"value": "a", "reason": "stolen", "author": "bob", "added_at": NOW, "expires_at": NOW},
        {"value": "b", "reason": "lost", "author": "ann", "added_at": NOW, "expires_at": None},
    ]
    assert {field.name: sql_name(field.type) for field in found.schema} == ddl.columns(COLUMNS)


def test_without_a_broker_a_list_is_an_empty_table_with_a_version(tmp_path: Path) -> None:
    tables = ReferenceTables({"blocked": Table(list="blocked_cards")}, tmp_path)
    assert tables.take() == {"blocked": EmptyTopic(Table(list="blocked_cards"), tmp_path).in_force.digest}
    spark: Any = SimpleNamespace(read=SimpleNamespace(parquet=pq.read_table))
    loaded: Any = tables.load(spark)
    found: pa.Table = loaded["blocked"]
    assert (found.num_rows, found.schema.names) == (0, [*ddl.columns(COLUMNS)])
    assert not tables.poll()
    tables.close()


@pytest.mark.parametrize(
    ("column", "into", "why"), [("card", "x", "no column card"), ("card_id", "mcc", "a column mcc")]
)
def test_a_lookup_by_a_column_that_is_not_there_is_refused(column: str, into: str, why: str) -> None:
    events: Any = SimpleNamespace(columns=["card_id", "mcc"])
    with pytest.raises(ValueError, match=why):
        listed(events, events, column, into=into)
