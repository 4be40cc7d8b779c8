"""Which files of a table are merged, and how: the small ones of a day and bucket into large ones, in topic order."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lozenge.archive.columns import BUCKET, DAY, OFFSET, PARTITION
from lozenge.archive.data_files import ROW_GROUP, DataFile, all_or_none, write
from lozenge.archive.settings import MEGABYTE
from lozenge.sink_declarations.archive_sink import FILE_MB

FILE_BYTES = FILE_MB * MEGABYTE
MANY_FILES = 100
"""So many files of the present day and one bucket are merged too: each commit makes one in each bucket."""


class SmallFiles(NamedTuple):
    """The files of a day and bucket that are to be merged."""

    day: date
    bucket: int
    files: Sequence[DataFile]


def to_merge(files: Iterable[DataFile], closed_before: date, file_bytes: int = FILE_BYTES) -> list[SmallFiles]:
    """The days and buckets whose files are to be merged, the oldest first.

    A day before `closed_before` gets no more rows, so its files are as few as their sizes allow. `files` are sorted by
    day and bucket. A file that is large enough stays as it is.
    """
    found = []
    for (day, bucket), group in groupby(files, lambda file: (file.day, file.bucket)):
        small = [file for file in group if file.size < file_bytes // 2]
        if len(small) > (1 if day < closed_before else MANY_FILES):
            found.append(SmallFiles(day, bucket, small))
    return found


def merged(folder: Path, small: SmallFiles, columns: pa.Schema, file_bytes: int = FILE_BYTES) -> list[DataFile]:
    """New files with the rows of some files, read bit by bit: by partition, and of each partition by offset.

    Raises OSError if the disk is full, and leaves no new file then.
    """
    parts = in_row_groups(_parts(folder, small, columns))
    return all_or_none(folder, write(folder, small.day, small.bucket, parts, file_bytes=file_bytes))


def contents(folder: Path, small: SmallFiles) -> list[int]:
    """What the files are until an erasure replaces one in place; what was merged of others is given up then."""
    return [(folder / file.path).stat().st_ino for file in small.files]


def _parts(folder: Path, small: SmallFiles, columns: pa.Schema) -> Iterator[pa.Table]:
    stored = pa.schema([field for field in columns if field.name not in (DAY, BUCKET)])
    for partition in sorted({p for file in small.files for p in range(file.partition, file.last_partition + 1)}):
        held = [file for file in small.files if file.partition <= partition <= file.last_partition]
        for rows in _in_order(folder, held, partition):
            day = pa.repeat(pa.scalar(small.day, pa.date32()), len(rows))
            bucket = pa.repeat(pa.scalar(small.bucket, pa.int32()), len(rows))
            yield as_columns(rows, stored).append_column(DAY, day).append_column(BUCKET, bucket)


def _in_order(folder: Path, files: Sequence[DataFile], partition: int) -> Iterator[pa.Table]:
    """The rows of one partition. A commit has later offsets of it than all before, so the files follow each other."""
    starts = []
    for number, file in enumerate(files):
        if (first := next(_rows(folder, file, partition), None)) is not None:
            starts.append((first[OFFSET][0].as_py(), number))
    for _, number in sorted(starts):
        yield from _rows(folder, files[number], partition)


def _rows(folder: Path, file: DataFile, partition: int) -> Iterator[pa.Table]:
    with pq.ParquetFile(folder / file.path) as reader:
        for batch in reader.iter_batches(ROW_GROUP):
            rows = pa.Table.from_batches([batch])
            mine = rows.filter(pc.equal(rows[PARTITION], pa.scalar(partition, pa.int32())))
            if len(mine):
                yield mine


def in_row_groups(parts: Iterable[pa.Table], rows: int = ROW_GROUP) -> Iterator[pa.Table]:
    """The same rows in parts of at least so many: a small file would become a small row group of a large one."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def as_columns(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with exactly these columns; what they were written without is null."""
    found = [
        _as(rows[field.name].combine_chunks(), field.type)
        if field.name in rows.schema.names
        else pa.nulls(len(rows), field.type)
        for field in columns
    ]
    return pa.table(found, schema=columns)


def _as(values: Any, kind: Any) -> Any:
    """The values as this type, whose structs may have more fields."""
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if values.type == kind or not pa.types.is_struct(kind):
        return values.cast(kind)
    held = {field.name: number for number, field in enumerate(values.type)}
    parts = [
        _as(values.field(held[field.name]), field.type) if field.name in held else pa.nulls(len(values), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
