"""Erases a subject from the files of tables, in place: from those of every version, and from those of no version.

A new file is as long as the one that it replaces, since the log of a table has its size: between the rows and the
footer of a Parquet file there may be bytes that nobody reads. The log has statistics of coordinates alone, and a row
keeps these, so every version of a table can be read as before.

The sink may merge files meanwhile. It reads them, writes others, and commits only if none of them was replaced since
(`lozenge.archive.compaction`). So one that looks at a folder until it has no file that was not looked at has seen all.
"""

import fcntl
import os
import shutil
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.archive.columns import BUCKET, DAY
from lozenge.archive.erased_rows import (
    ALERT_ID,
    ENTITY,
    ErasedRows,
    ErasureTarget,
    alerts_of,
    erased,
    naming,
    text_columns,
)
from lozenge.errors import NotErased
from lozenge.protocol.data_subject import DataSubject

LOCK = "erasure.lock"
WRITING_SECONDS = 60.0
"""How long a file may take that a sink writes just now."""
_POLL_SECONDS = 0.2
_LOOKS = 20
_NEW = ".erasing"
_FOOTER = struct.Struct("<I4s")
_TRIES = ((None, True), (None, False), (19, False))
"""Levels of compression, and whether groups have statistics: the next one if a file becomes longer than it was.

60,000 authorisations without 30 of a card are 19 bytes shorter than before, 5,000 without 50 of them 65 bytes longer.
The second way saves 2 KB a group, and the last one a twentieth of the file, at 4 s a megabyte.
"""


class ErasedTable(NamedTuple):
    """How many rows were `removed` but for their coordinates, in how many a word was `masked`, in how many `files`."""

    removed: int = 0
    masked: int = 0
    files: int = 0

    def plus(self, other: "ErasedTable") -> "ErasedTable":
        """Both together."""
        return ErasedTable(*(mine + its for mine, its in zip(self, other, strict=True)))


@contextmanager
def erasing(archive: Path) -> Iterator[None]:
    """One erasure of an archive at a time: of two, one would undo the other. Raises NotErased if there is another."""
    with (archive / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise NotErased(
                f"erasing from {archive}: another erasure is at work", hint="run this one again once it has ended"
            ) from error
        yield


def alerts_in(folder: Path, subject: DataSubject) -> set[str]:
    """The ids of the subject's alerts in every file of a table that names alerts and entities. Raises as `erase`."""
    found = set[str]()
    for file in _files(folder, None):
        with suppress(FileNotFoundError), _opened(file) as reader:  # one that is gone was merged into another
            for group in range(reader.num_row_groups):
                found |= alerts_of(reader.read_row_group(group, columns=[ENTITY, ALERT_ID]), subject)
    return found


def erase(folder: Path, target: ErasureTarget, bucket: int | None = None, *, dry_run: bool) -> ErasedTable:
    """Erases a subject from every file of the table in `folder`; a second call finds nothing.

    Its rows are in one `bucket` alone if the subject is their key. A `dry_run` only counts. Raises NotErased if a file
    cannot be read, or not be replaced.
    """
    for left in folder.glob(f"*/*/*{_NEW}"):  # of an erasure that was killed
        left.unlink(missing_ok=True)
    total, seen = ErasedTable(), set[tuple[str, int]]()
    for _ in range(_LOOKS):
        fresh = [file for file in _files(folder, bucket) if (name := _identity(file)) and name not in seen]
        if not fresh:
            return total
        for file in fresh:
            if (found := _erase_file(file, target, dry_run=dry_run)) is not None:
                total = total.plus(found)
                seen |= {name for name in [_identity(file)] if name}
    raise NotErased(
        f"erasing from {folder}: there were new files at each of {_LOOKS} looks",
        hint="pause its sink, and run this again",
    )


def padded(file: Path, size: int) -> bool:
    """Makes a Parquet file `size` bytes long, by zeros before its footer; false if it is longer already."""
    with file.open("r+b") as out:
        if (end := out.seek(0, os.SEEK_END)) > size:
            return False
        out.seek(end - _FOOTER.size)
        length, _ = _FOOTER.unpack(out.read(_FOOTER.size))
        begin = end - _FOOTER.size - length
        out.seek(begin)
        footer = out.read()
        out.truncate(begin)
        out.truncate(size)
        out.seek(size - len(footer))
        out.write(footer)
        out.flush()
        os.fsync(out.fileno())
    return True


def _files(folder: Path, bucket: int | None) -> Iterator[Path]:
    within = "*" if bucket is None else str(bucket)
    yield from sorted(folder.glob(f"{DAY}=*/{BUCKET}={within}/*.parquet"))


def _identity(file: Path) -> tuple[str, int] | None:
    """What a file is until it is replaced; None if it is gone."""
    try:
        return str(file), file.stat().st_ino
    except FileNotFoundError:
        return None


def _erase_file(file: Path, target: ErasureTarget, *, dry_run: bool) -> ErasedTable | None:
    """What was erased of one file; None if it is gone, as a merge that was given up is."""
    try:
        with _opened(file) as reader:
            texts = text_columns(reader.schema_arrow)
            groups = range(reader.num_row_groups)
            if not any(naming(reader.read_row_group(group, columns=texts), target) for group in groups):
                return ErasedTable()
            if dry_run:
                return _total(erased(reader.read_row_group(group), target) for group in groups)
            return _replaced(file, reader, target)
    except FileNotFoundError:
        return None
    except OSError as error:
        _new(file).unlink(missing_ok=True)
        raise NotErased(
            f"erasing from {file}: {error.strerror or error}", hint="make room on its disk, and run this again"
        ) from error


def _new(file: Path) -> Path:
    return file.with_name(file.name + _NEW)


@contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    """Opens a file, which may be written just now. Raises NotErased for one that stays without a footer."""
    deadline = time.monotonic() + WRITING_SECONDS
    while True:
        try:
            reader = pq.ParquetFile(file)
            break
        except pa.ArrowInvalid as error:
            unchanged = time.time() - file.stat().st_mtime
            if unchanged > WRITING_SECONDS or time.monotonic() > deadline:
                raise NotErased(
                    f"erasing from {file}: it has no footer, so what it has cannot be read",
                    hint="if its sink was killed while it wrote, delete the file: no version of the table names it",
                ) from error
            time.sleep(_POLL_SECONDS)
    with reader:
        yield reader


def _replaced(file: Path, reader: pq.ParquetFile, target: ErasureTarget) -> ErasedTable:
    """Replaces a file by one of its length; raises NotErased if no compression makes it short enough."""
    new, size = _new(file), file.stat().st_size
    for level, statistics in _TRIES:
        found = _write(new, reader, target, level, statistics)
        if padded(new, size):
            shutil.copymode(file, new)
            new.replace(file)
            _synchronise(file.parent)
            return found
    new.unlink()
    raise NotErased(
        f"erasing from {file}: without these rows it is longer than {size} bytes, however it is compressed",
        hint="they are still there; retention removes them with their day",
    )


def _write(
    new: Path, reader: pq.ParquetFile, target: ErasureTarget, level: int | None, statistics: bool
) -> ErasedTable:
    """Writes the rows of a file without a subject, in the same groups."""

    def groups() -> Iterator[ErasedRows]:
        for group in range(reader.num_row_groups):
            found = erased(reader.read_row_group(group), target)
            writer.write_table(found.rows, row_group_size=max(1, len(found.rows)))
            yield found

    with pq.ParquetWriter(
        new, reader.schema_arrow, compression="zstd", compression_level=level, write_statistics=statistics
    ) as writer:
        return _total(groups())


def _total(groups: Iterable[ErasedRows]) -> ErasedTable:
    """What was erased of the groups of one file."""
    total = ErasedTable(files=1)
    for found in groups:
        total = total.plus(ErasedTable(found.removed, found.masked))
    return total


def _synchronise(folder: Path) -> None:
    """A power failure must not bring the old file back."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
