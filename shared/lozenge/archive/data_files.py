"""The Parquet files of a table: a file has rows of one day and bucket, in the order of the topic.

They are written here and not by `deltalake`, which writes several batches in any order. A file that no commit names
is none of the table's, so a process may be killed at any moment.
"""

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction

from lozenge.archive.columns import BUCKET, DAY, OFFSET, PARTITION, PARTITIONED_BY

ROW_GROUP = 65_536
"""Rows that readers can skip at once."""


class DataFile(NamedTuple):
    """A file at `path` below the folder of its table.

    Its partitions and offsets are between those that are named: `offset` is the smallest of any partition.
    """

    path: str
    day: date
    bucket: int
    rows: int
    size: int
    partition: int
    last_partition: int
    offset: int
    last_offset: int

    @property
    def values(self) -> dict[str, str | None]:
        """Those of the columns by which the table is partitioned."""
        return {DAY: str(self.day), BUCKET: str(self.bucket)}

    def added(self, *, new_rows: bool) -> AddAction:
        """Its part of a commit; without `new_rows` they come from files that the commit removes."""
        stats = {
            "numRecords": self.rows,
            "minValues": {PARTITION: self.partition, OFFSET: self.offset},
            "maxValues": {PARTITION: self.last_partition, OFFSET: self.last_offset},
            "nullCount": {PARTITION: 0, OFFSET: 0},
        }
        return AddAction(self.path, self.size, self.values, _now_ms(), new_rows, json.dumps(stats))

    def removed(self, *, rows: bool) -> RemoveAction:
        """Its part of a commit that removes it, with its `rows` or because they are in other files now."""
        return RemoveAction(self.path, rows, _now_ms(), self.size, self.values)

    @classmethod
    def of(cls, added: Mapping[str, Any]) -> "DataFile":
        """That of a row of the table's flattened list of files."""
        return cls(
            path=added["path"],
            day=added[f"partition.{DAY}"],
            bucket=added[f"partition.{BUCKET}"],
            rows=added["num_records"],
            size=added["size_bytes"],
            partition=added[f"min.{PARTITION}"],
            last_partition=added[f"max.{PARTITION}"],
            offset=added[f"min.{OFFSET}"],
            last_offset=added[f"max.{OFFSET}"],
        )


def written(folder: Path, rows: pa.Table) -> list[DataFile]:
    """Files with all of `rows`, which are sorted by day, bucket, partition and offset: one for each day and bucket.

    Raises OSError if the disk is full, and leaves no file then.
    """
    return all_or_none(folder, _one_each(folder, rows))


def _one_each(folder: Path, rows: pa.Table) -> Iterator[DataFile]:
    counts = rows.group_by(PARTITIONED_BY, use_threads=False).aggregate([([], "count_all")])
    begin = 0
    for group in counts.to_pylist():
        part = rows.slice(begin, group["count_all"])
        begin += group["count_all"]
        yield from write(folder, group[DAY], group[BUCKET], [part], file_bytes=None)


def all_or_none(folder: Path, files: Iterable[DataFile]) -> list[DataFile]:
    """All of `files`, which are written as they are taken; an OSError deletes those that were.

    A file that no commit names stays for days, and a disk that is full would never have space again.
    """
    found: list[DataFile] = []
    try:
        found.extend(files)  # has what was taken until the error
    except OSError:
        delete(folder, found)
        raise
    return found


def delete(folder: Path, files: Iterable[DataFile]) -> None:
    """Deletes files that no commit names."""
    for file in files:
        (folder / file.path).unlink(missing_ok=True)


def write(
    folder: Path, day: date, bucket: int, parts: Iterable[pa.Table], *, file_bytes: int | None
) -> Iterator[DataFile]:
    """Writes rows of one day and bucket bit by bit, in the order in which they come.

    A file ends with the part in which it exceeds `file_bytes`. Each is given as soon as it is complete.
    """
    waiting = iter(parts)
    while (first := next(waiting, None)) is not None:
        yield _write_one(folder, day, bucket, first, waiting, file_bytes)


def _write_one(
    folder: Path, day: date, bucket: int, first: pa.Table, more: Iterator[pa.Table], file_bytes: int | None
) -> DataFile:
    path = f"{DAY}={day}/{BUCKET}={bucket}/part-{uuid.uuid4()}.zstd.parquet"
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    first = first.drop_columns(PARTITIONED_BY)
    bounds = _Bounds()
    with _deleted_if_unfinished(file), file.open("wb") as out:
        with pq.ParquetWriter(out, first.schema, compression="zstd") as writer:
            part: pa.Table | None = first
            while part is not None:
                writer.write_table(part.select(first.schema.names), row_group_size=ROW_GROUP)
                bounds.add(part)
                out.flush()
                is_full = file_bytes is not None and file.stat().st_size >= file_bytes
                part = None if is_full else next(more, None)
        out.flush()
        os.fsync(out.fileno())  # a commit must name no file that a power failure takes away
    return DataFile(path, day, bucket, bounds.rows, os.path.getsize(file), *bounds.partition, *bounds.offset)


@contextmanager
def _deleted_if_unfinished(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        file.unlink(missing_ok=True)
        raise


class _Bounds:
    """What the parts of a file have: rows, and the least and the greatest partition and offset."""

    def __init__(self) -> None:
        self.rows = 0
        self.partition = self.offset = (2**62, -1)

    def add(self, part: pa.Table) -> None:
        self.rows += len(part)
        self.partition = _wider(self.partition, part[PARTITION])
        self.offset = _wider(self.offset, part[OFFSET])


def _wider(bounds: tuple[int, int], values: Any) -> tuple[int, int]:
    found: Any = pc.min_max(values).as_py()
    return min(bounds[0], found["min"]), max(bounds[1], found["max"])


def _now_ms() -> int:
    return int(time.time() * 1000)
