from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.archive.columns import columns_of
from lozenge.archive.compaction import MANY_FILES, as_columns, in_row_groups, merged, to_merge
from lozenge.archive.data_files import DataFile
from tests.archive_rows import DAY, RECORD, positions, positions_by_file, rows, table_in

NEXT = DAY + timedelta(days=1)


def file(day: date, bucket: int, size: int = 10) -> DataFile:
    return DataFile(f"{day}/{bucket}", day, bucket, 1, size, 0, 0, 0, 0)


def test_the_files_of_a_day_that_is_over_are_merged_and_those_of_the_present_day_once_they_are_many() -> None:
    few = [file(DAY, 0), file(DAY, 0), file(DAY, 1), file(NEXT, 0), file(NEXT, 0)]
    assert [(s.day, s.bucket, len(s.files)) for s in to_merge(few, NEXT)] == [(DAY, 0, 2)]
    many = [file(NEXT, 0)] * (MANY_FILES + 1)
    assert [(s.day, len(s.files)) for s in to_merge(many, NEXT)] == [(NEXT, MANY_FILES + 1)]
    assert to_merge(many[1:], NEXT) == []


def test_a_large_file_stays_as_it_is() -> None:
    files = [file(DAY, 0, 100), file(DAY, 0, 40), file(DAY, 0, 30)]
    assert [s.files for s in to_merge(files, NEXT, 100)] == [files[1:]]
    assert to_merge(files[:2], NEXT, 100) == []


def test_merged_files_have_every_row_in_the_order_of_the_topic(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    ends: dict[int, int] = {}
    for start in range(0, 400, 40):
        for partition in (1, 0):
            table.append(rows(partition, range(start, start + 40)), ends, {partition: start + 40})
            ends[partition] = start + 40
    before = positions(table)
    for small in to_merge(table.files(), NEXT):
        assert table.replace(small.files, merged(tmp_path, small, table.columns))
    files = positions_by_file(table)
    assert len(files) == 2
    assert all(each == sorted(each) for each in files)
    assert positions(table) == before
    assert to_merge(table.files(), NEXT) == []


def test_small_parts_become_parts_of_a_row_group() -> None:
    parts = [rows(0, range(start, start + 10)) for start in range(0, 50, 10)]
    assert [len(part) for part in in_row_groups(parts, 20)] == [20, 20, 10]
    assert list(in_row_groups([])) == []


def test_older_rows_get_nulls_in_the_columns_that_came_later(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.append(rows(0, [0]), {}, {0: 1})
    raw = {"type": "record", "name": "Raw", "fields": [{"name": n, "type": "string"} for n in ("source", "topic")]}
    grown = columns_of({"fields": [RECORD["fields"][0], {"name": "raw", "type": raw}, {"name": "n", "type": "int"}]})
    table.append(rows(0, [2], columns=grown, n=7, raw={"source": "s", "topic": "t"}), {0: 1}, {0: 3})
    [small] = to_merge(table.files(), NEXT)
    [new] = merged(tmp_path, small, table.columns)
    found = pq.ParquetFile(tmp_path / new.path).read().to_pylist()
    assert [(row["n"], row["raw"]) for row in found] == [
        (None, {"source": "test", "topic": None}),
        (7, {"source": "s", "topic": "t"}),
    ]


def test_a_struct_that_is_null_stays_null_when_it_gains_a_field() -> None:
    one = pa.schema([("r", pa.struct([("a", pa.int32())]))])
    two = pa.schema([("r", pa.struct([("a", pa.int32()), ("b", pa.int32())]))])
    found = as_columns(pa.table({"r": [None, {"a": 1}]}, schema=one), two)
    assert found["r"].to_pylist() == [None, {"a": 1, "b": None}]
