"""A table of the platform as a detector reads it: its own columns, typed, or why it cannot have them."""

from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.platform_rows import PlatformRows
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.protocol.table_records import COLUMNS_KEY, TableColumns, TableRecord, encoded_row, row_key

READ = PlatformRows("limits", "most decimal(18,4), country string")
RECORDS: dict[str, TableRecord] = {
    row_key(["FR"]): encoded_row({"country": "FR", "most": None, "more": "x"}),
    row_key(["DE"]): encoded_row({"country": "DE", "most": "1.5000", "more": None}),
    COLUMNS_KEY: TableColumns("country string, most decimal(18,4), more string", ("country",)),
}


def test_the_declared_columns_are_written_in_the_order_of_the_keys(tmp_path: Path) -> None:
    READ.write(RECORDS, tmp_path / "new")
    rows = [{"most": Decimal("1.5000"), "country": "DE"}, {"most": None, "country": "FR"}]
    assert pq.read_table(tmp_path / "new").to_pylist() == rows
    found = READ.contents(9, RECORDS)
    assert (found.entries, found.problems, found.shape) == (2, (), {"most": "decimal(18,4)", "country": "string"})


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        ("country string", "it has no column most; its columns are country"),
        ("country string, most double", "its column most is double, and decimal(18,4) is declared"),
        ("country array", "its columns cannot be read"),
        ("", "nothing was loaded yet"),
    ],
)
def test_columns_that_are_not_as_declared_are_a_problem_each(loaded: str, why: str) -> None:
    columns: dict[str, TableRecord] = {COLUMNS_KEY: TableColumns(loaded, ("country",))} if loaded else {}
    [problem] = READ.contents(9, columns).problems
    assert why in problem


def test_without_a_broker_it_has_its_columns_and_no_rows(tmp_path: Path) -> None:
    tables = ReferenceTables({"limits": Table(table="limits", columns=READ.columns)}, tmp_path, tmp_path / "copies")
    place = tmp_path / "copies" / "limits" / tables.take()["limits"]
    assert pq.read_table(place).schema.names == ["most", "country"]
    tables.close()
