"""The rows of a Delta table, pinned at one version, or of Parquet files that do not change while they are read."""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lozenge.errors import first_line
from lozenge.process.file_versions import data_files
from lozenge_upstream.tables.source_rows import PART_ROWS, Part, SourceUnavailable, UnusableSource, places

_DELTA_LOG = "_delta_log"


class DeltaRows:
    """The newest version of a Delta table, in a folder or where deltalake finds it, such as at s3://."""

    def __init__(self, place: str) -> None:
        self.name = place

    def version(self) -> str | None:
        """The number of its version."""
        return str(self._opened().version())

    def parts(self, columns: Sequence[str]) -> Generator[Part, None, None]:
        """All rows of one version."""
        table = self._opened()
        try:
            dataset: Any = table.to_pyarrow_dataset()
        except DeltaError as error:
            raise UnusableSource(f"this version of Delta cannot be read: {first_line(error)}") from error
        yield from _parts(self.name, dataset, columns)

    def _opened(self) -> DeltaTable:
        try:
            return DeltaTable(self.name)
        except (DeltaError, OSError, ValueError) as error:
            raise SourceUnavailable(f"reading {self.name}: {first_line(error)}") from error


class ParquetRows:
    """A file or a folder of Parquet on this machine."""

    def __init__(self, place: str) -> None:
        self.name, self._path = place, Path(place)

    def version(self) -> str | None:
        """Files have no version that covers all of them."""
        return None

    def parts(self, columns: Sequence[str]) -> Generator[Part, None, None]:
        """All rows; raises SourceUnavailable at the end if a file has changed meanwhile."""
        before = self._signatures()
        try:
            dataset: Any = ds.dataset(self._path, format="parquet", partitioning="hive")
        except pa.ArrowException as error:
            raise UnusableSource(f"it is no readable Parquet: {first_line(error)}") from error
        except OSError as error:
            raise SourceUnavailable(f"reading {self.name}: {first_line(error)}") from error
        yield from _parts(self.name, dataset, columns)
        if self._signatures() != before:
            raise SourceUnavailable(f"reading {self.name}: it changes while it is read")

    def _signatures(self) -> list[tuple[str, int, int]]:
        try:
            self._path.stat()
            return [(str(file), (at := file.stat()).st_size, at.st_mtime_ns) for file in data_files(self._path)]
        except OSError as error:
            raise SourceUnavailable(f"reading {self.name}: {error.strerror or error}") from error


def lake_rows(place: str) -> DeltaRows | ParquetRows:
    """What is at a path; elsewhere than on this machine it is Delta."""
    return DeltaRows(place) if "://" in place or (Path(place) / _DELTA_LOG).is_dir() else ParquetRows(place)


def _parts(name: str, dataset: Any, columns: Sequence[str]) -> Iterator[Part]:
    found = [*dataset.schema.names]
    wanted = [found[place] for place in places(columns, found)]
    try:
        for batch in dataset.to_batches(columns=wanted, batch_size=PART_ROWS):
            if batch.num_rows:
                yield [_plain(batch.column(column)).to_pylist() for column in wanted]
    except (pa.ArrowException, OSError) as error:
        raise SourceUnavailable(f"reading {name}: {first_line(error)}") from error


def _plain(column: Any) -> Any:
    """pandas writes nanoseconds, which no declared type has."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column
