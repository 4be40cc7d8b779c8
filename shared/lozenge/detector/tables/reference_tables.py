"""Reference tables that a detector joins on: files, lists and tables of the platform, each taken at a batch boundary.

A version counts only if all of it is good. Otherwise the last good one stays in force, and an alarm names table, file
and cause. Spark reads private copies, so what was validated is what a query reads.
"""

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lozenge import ddl
from lozenge.detector.tables import csv_table
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.topic_content import EmptyTopic
from lozenge.errors import DetectorError
from lozenge.platform_tables.column_types import column_types, sql_name
from lozenge.process.file_versions import FileVersions, data_files
from lozenge.process.last_good import Contents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOGS = ("_delta_log", ".hoodie")
"""Folders of a table format. Its folder also holds files of rows that are deleted or replaced."""


class TableVersions(Protocol):
    """The versions of one table: `FileVersions` has those of a file.

    `in_force` is what was found in the version that is, None before the first. `refused` is why the table as it is now
    is not in force; empty if it is. `source` names it for people.
    """

    @property
    def source(self) -> object: ...

    @property
    def in_force(self) -> Contents | None: ...

    @property
    def refused(self) -> tuple[str, ...]: ...

    def poll(self) -> None:
        """Looks for a new version."""

    def path(self, digest: str, /) -> Path:
        """What users of this version read."""


class TopicVersions(TableVersions, Protocol):
    """The versions of a list or a platform table, which may hold a connection."""

    def close(self) -> None:
        """Closes it."""


class ReferenceTables:
    """The declared tables of one detector; one thread uses it.

    `taken` are the versions that its query reads: the digest by name. They change only by `take`.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        source: Path,
        copies: Path | None = None,
        topics: Callable[[Table, Path], TopicVersions] = EmptyTopic,
    ) -> None:
        """The files are in the folder `source`. Without a folder for `copies` they live as long as this object.

        `topics` makes the versions of a list or a platform table, given the folder of their copies.
        """
        folder = copies
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="lozenge-tables-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._topics = {name: topics(table, folder / name) for name, table in tables.items() if not table.path}
        files = {name: _versions(table, source, folder / name) for name, table in tables.items() if table.path}
        self._tables: dict[str, TableVersions] = {name: {**files, **self._topics}[name] for name in tables}
        self.taken: dict[str, str] = {}

    def poll(self) -> bool:
        """Looks for new versions. Whether good ones have come that the query does not read yet."""
        for table in self._tables.values():
            table.poll()
        return self._in_force() != self.taken

    def take(self) -> dict[str, str]:
        """From now on queries read what is in force; raises DetectorError if a table never had a good version."""
        self.poll()
        missing = {name: table for name, table in self._tables.items() if table.in_force is None}
        if missing:
            raise DetectorError(
                "\n".join(f"reading {_refusal(name, table)}" for name, table in missing.items()),
                hint="correct what is named, or what [tool.lozenge.tables] says of it",
            )
        self.taken = self._in_force()
        return self.taken

    def alarms(self) -> list[str]:
        """Why tables are not in force as they are now, each with its source and the version that is."""
        return [
            f"{_refusal(name, table)}; version {good.digest} with {good.entries} rows stays in force"
            for name, table in self._tables.items()
            if table.refused and (good := table.in_force) is not None
        ]

    def close(self) -> None:
        """Closes the connections to topics."""
        for each in self._topics.values():
            each.close()

    def load(self, spark: "SparkSession") -> dict[str, "DataFrame"]:
        """Every table by name, in the version that was taken."""
        return {name: spark.read.parquet(str(self._tables[name].path(digest))) for name, digest in self.taken.items()}

    def _in_force(self) -> dict[str, str]:
        return {name: table.in_force.digest for name, table in self._tables.items() if table.in_force is not None}


def problems(table: Table, source: Path) -> tuple[str, ...]:
    """Everything that is wrong with the table's file in the folder `source`; empty if a job can begin with it."""
    with tempfile.TemporaryDirectory(prefix="lozenge-tables-") as folder:
        versions = _versions(table, source, Path(folder))
        versions.poll()
        return versions.refused


def _refusal(name: str, table: TableVersions) -> str:
    return f"table {name}: {table.source} is refused: {'; '.join(table.refused)}"


def _versions(table: Table, source: Path, copies: Path) -> FileVersions:
    path = source / table.path
    prepare = partial(_prepared_csv, table, path.name) if table.columns else partial(_prepared_parquet, path)
    return FileVersions(path, copies, prepare, table.bounds, salt=table.columns)


def _prepared_csv(table: Table, origin: str, copy: Path, ready: Path) -> Contents:
    """Spark gets the rows as Parquet: it would take CSV's columns by their position, and parse each batch again."""
    try:
        types = column_types(table.columns)
    except ValueError as error:
        return Contents(problems=(str(error),))
    files = [(_name(file, copy, origin), file) for file in data_files(copy)]
    if not files:
        return Contents(problems=(f"{origin} holds no file",))
    if repeated := [*_unreadable(pa.schema(list(types.items())))]:
        return Contents(problems=tuple(f"columns: {problem}" for problem in repeated))
    found = csv_table.read(files, types, ddl.not_null(table.columns))
    shape = {name: sql_name(kind) for name, kind in types.items()}
    if not found.problems:
        pq.write_table(found.rows, _file_in(ready))
    return Contents("", found.rows.num_rows, shape, found.terminated, tuple(found.problems), _values([found.rows]))


def _prepared_parquet(source: Path, copy: Path, ready: Path) -> Contents:
    """All files are read to their end, and have the same columns."""
    origin, files = source.name, data_files(copy)
    if logs := [log for log in _LOGS if (source / log).is_dir()]:
        return Contents(problems=(f"{origin} has a {logs[0]}, which says which files count; write plain Parquet",))
    if not files:
        return Contents(problems=(f"{origin} holds no file",))
    schemas: dict[str, pa.Schema] = {}
    values, wrong = Counter[str](), []
    for file in files:
        name = _name(file, copy, origin)
        try:
            with pq.ParquetFile(file) as found:
                values.update(_values(found.iter_batches()))
                schemas[name] = found.schema_arrow.remove_metadata()
        except (OSError, pa.ArrowException) as error:
            wrong.append(f"{name} is no readable Parquet file: {str(error).splitlines()[0]}")
    first = next(iter(schemas.items()), None)
    wrong += [
        f"{name} has other columns than {first[0]}" for name, schema in schemas.items() if first and schema != first[1]
    ]
    if not wrong:
        whole: Any = ds.dataset(copy, format="parquet", partitioning="hive") if copy.is_dir() else ds.dataset(copy)
        wrong = [f"{origin} has {problem}" for problem in _unreadable(whole.schema)]
    if wrong:
        return Contents(problems=tuple(wrong))
    shape = {column.name: sql_name(column.type) for column in whole.schema}
    rows = whole.count_rows()
    if any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in _kinds(whole.schema)):
        # pandas writes nanoseconds, which Spark refuses
        pq.write_table(whole.to_table(), _file_in(ready), coerce_timestamps="us", allow_truncated_timestamps=True)
    else:
        _placed(copy, ready)
    return Contents("", rows, shape, values=dict(values))


def _values(parts: Iterable[pa.Table | pa.RecordBatch]) -> dict[str, int]:
    """How many rows have a value, by column."""
    found = Counter[str]()
    for part in parts:
        columns: Iterable[Any] = part.columns
        found.update({n: part.num_rows - c.null_count for n, c in zip(part.schema.names, columns, strict=True)})
    return dict(found)


def _unreadable(schema: pa.Schema) -> Iterator[str]:
    """The columns that a query could not read, in words."""
    names = Counter(name.lower() for name in schema.names)
    if repeated := [name for name in schema.names if names[name.lower()] > 1]:
        yield f"the columns {', '.join(repeated)}, which Spark takes for one"
    for column in schema:
        if odd := [str(kind) for kind in _kinds([column]) if _is_unreadable(kind)]:
            yield f"the column {column.name} of type {', '.join(odd)}, which Spark cannot read"


def _is_unreadable(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_float16(kind) or types.is_time(kind) or (types.is_decimal(kind) and kind.precision > ddl.MOST_DIGITS)
    )


def _kinds(columns: Iterable[Any]) -> Iterator[pa.DataType]:
    """The types of columns and fields, and of all that is in them."""
    for column in columns:
        kind: Any = column.type
        yield kind
        yield from _kinds(kind.field(number) for number in range(kind.num_fields))


def _placed(copy: Path, ready: Path) -> None:
    if copy.is_dir():
        copy.rename(ready)
    else:
        copy.rename(_file_in(ready))


def _file_in(folder: Path) -> Path:
    folder.mkdir()
    return folder / "data.parquet"


def _name(file: Path, copy: Path, origin: str) -> str:
    return origin if file == copy else f"{origin}/{file.relative_to(copy)}"
