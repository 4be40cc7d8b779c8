"""Delta tables and Parquet files as sources."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lozenge_upstream.tables.lake import DeltaRows, ParquetRows, lake_rows
from lozenge_upstream.tables.source_rows import PART_ROWS, SourceUnavailable, UnusableSource


def rows(count: int) -> pa.Table:
    return pa.table({"n": [*range(count)], "Country": ["DE"] * count})


def values(source: DeltaRows | ParquetRows, *columns: str) -> list[tuple[object, ...]]:
    return [row for part in source.parts(columns) for row in zip(*part, strict=True)]


def test_a_delta_table_has_versions_and_only_the_rows_of_its_newest(tmp_path: Path) -> None:
    place = str(tmp_path / "limits")
    write_deltalake(place, rows(5))
    source = lake_rows(place)
    assert isinstance(source, DeltaRows)
    before = source.version()
    DeltaTable(place).delete("n > 2")
    assert (before, source.version()) == ("0", "1")
    assert sorted(values(source, "country", "n")) == [("DE", 0), ("DE", 1), ("DE", 2)]


def test_a_file_and_a_folder_of_parquet_are_read_in_parts(tmp_path: Path) -> None:
    pq.write_table(rows(PART_ROWS + 1), tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").touch()
    for place in (tmp_path, tmp_path / "a.parquet"):
        source = lake_rows(str(place))
        assert isinstance(source, ParquetRows)
        assert [len(part[0]) for part in source.parts(["n"])] == [PART_ROWS, 1]


def test_the_folders_of_a_partitioned_table_are_a_column(tmp_path: Path) -> None:
    pq.write_to_dataset(pa.table({"n": [1, 2], "country": ["DE", "FR"]}), tmp_path, partition_cols=["country"])
    assert sorted(values(ParquetRows(str(tmp_path)), "country", "n")) == [("DE", 1), ("FR", 2)]


def test_nanoseconds_are_read_as_microseconds(tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([1_001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    [(at,)] = values(ParquetRows(str(tmp_path)), "at")
    assert str(at) == "1970-01-01 00:00:00.000001"


def test_a_source_that_changes_while_it_is_read_has_no_version(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(rows(3), file)
    parts = ParquetRows(str(tmp_path)).parts(["n"])
    next(parts)
    pq.write_table(rows(3), tmp_path / "b.parquet")
    with pytest.raises(SourceUnavailable, match="changes while it is read"):
        next(parts)


def test_what_is_missing_or_no_parquet_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="No such file"):
        values(ParquetRows(str(tmp_path / "nowhere")), "n")
    with pytest.raises(SourceUnavailable):
        DeltaRows(str(tmp_path)).version()
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(UnusableSource, match="no readable Parquet"):
        values(ParquetRows(str(tmp_path)), "n")
    pq.write_table(rows(1), tmp_path / "a.parquet")
    with pytest.raises(UnusableSource, match="it has no column most; its columns are n, Country"):
        values(ParquetRows(str(tmp_path)), "n", "most")
