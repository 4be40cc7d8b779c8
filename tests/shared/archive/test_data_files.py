from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.archive.data_files import write, written
from tests.archive_rows import DAY, rows


def test_rows_become_one_file_for_each_day_and_bucket(tmp_path: Path) -> None:
    files = written(tmp_path, rows(3, range(5, 15)))
    assert [(f.day, f.bucket, f.rows, f.partition, f.offset, f.last_offset) for f in files] == [
        (DAY, 0, 5, 3, 6, 14),
        (DAY, 1, 5, 3, 5, 13),
    ]
    assert [file.size for file in files] == [(tmp_path / file.path).stat().st_size for file in files]
    assert pq.ParquetFile(tmp_path / files[0].path).read()["offset"].to_pylist() == [6, 8, 10, 12, 14]
    assert written(tmp_path, rows(0, [])) == []


def test_parts_are_written_in_their_order_and_a_file_ends_once_it_is_large_enough(tmp_path: Path) -> None:
    def parts(count: int) -> list[pa.Table]:
        return [rows(0, range(start, start + 20, 2)) for start in range(0, count * 20, 20)]

    [whole] = write(tmp_path, DAY, 0, parts(3), file_bytes=10**9)
    assert pq.ParquetFile(tmp_path / whole.path).read()["offset"].to_pylist() == list(range(0, 60, 2))
    each = list(write(tmp_path, DAY, 0, parts(3), file_bytes=1))
    assert [(file.rows, file.offset) for file in each] == [(10, 0), (10, 20), (10, 40)]
