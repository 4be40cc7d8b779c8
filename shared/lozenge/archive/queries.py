"""SQL over the tables of an archive: DuckDB, in memory, read only.

Each table is a view, as of the moment when the connection is made. Several tables of one kind are also one view:
`events`, `alerts`, `dead_letters`, with the columns of all of them.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lozenge.archive.columns import BUCKET, DAY
from lozenge.archive.delta_table import ArchiveTable
from lozenge.errors import UsageError, first_line

MEMORY_MB, THREADS = 1024, 2
BATCH_ROWS = 50_000
_TOGETHER = ("events", "alerts", "dead_letters")
_HIVE = f"hive_partitioning = true, hive_types = {{'{DAY}': DATE, '{BUCKET}': INT}}, union_by_name = true"


def tables_in(archive: Path) -> list[ArchiveTable]:
    """Every table of an archive, by the name of its view; raises UsageError if there is none."""
    found = [ArchiveTable.existing(log.parent) for log in sorted(archive.glob("*/_delta_log"))]
    if not found:
        raise UsageError(
            f"looking for an archive in {archive}: it has no tables",
            hint="name its folder by --archive or LOZENGE_ARCHIVE; its sink writes tables a minute after its start",
        )
    return sorted(found, key=lambda table: table.view)


def table_named(archive: Path, name: str) -> ArchiveTable:
    """The table of the view, or of the topic, `name`; raises UsageError if there is none."""
    tables = tables_in(archive)
    for table in tables:
        if name in (table.view, table.topic):
            return table
    have = ", ".join(table.view for table in tables)
    raise UsageError(f"looking for the table {name} in {archive}: there is none", hint=f"there are {have}")


class ArchiveQueries:
    """A connection with a view for each table, of which a query can change nothing.

    It reads files of the archive alone, writes one file at most, and needs no more than `memory_mb`; what does not
    fit goes to a temporary folder.
    """

    def __init__(
        self, tables: Sequence[ArchiveTable], *, memory_mb: int = MEMORY_MB, written: Path | None = None
    ) -> None:
        """`written` is the file that `write` may write."""
        self._connection = duckdb.connect(":memory:", config={"memory_limit": f"{memory_mb}MB", "threads": THREADS})
        for table in tables:
            self._add(table)
        for kind, views in groupby((table.view for table in tables), key=_kind):
            if kind:
                every = " UNION ALL BY NAME ".join(f"SELECT * FROM {_quoted(view)}" for view in views)
                self._connection.execute(f"CREATE VIEW {_quoted(kind)} AS {every}")
        folders = [str(table.folder.absolute()) for table in tables]
        self._connection.execute("SET allowed_directories = ?", [folders])
        if written is not None:
            temporary = written.with_name(f"tmp_{written.name}")  # DuckDB writes it first, and renames it
            self._connection.execute("SET allowed_paths = [?, ?]", [str(written), str(temporary)])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def __enter__(self) -> "ArchiveQueries":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def read(self, query: str) -> pa.RecordBatchReader:
        """The result, read bit by bit; raises UsageError for what is no query, or fails."""
        checked = self._query(query)
        try:
            result: pa.RecordBatchReader = self._connection.sql(checked).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise _failed(error) from error
        return result

    def export(self, query: str, file: Path, kind: str) -> int:
        """Writes the result to `file`, as "parquet" or "csv"; returns the rows. Raises as `read` does."""
        options = "FORMAT parquet, COMPRESSION zstd" if kind == "parquet" else "FORMAT csv, HEADER"
        checked = self._query(query)
        try:
            copied = self._connection.execute(f"COPY (\n{checked}\n) TO '{_escaped(str(file))}' ({options})").fetchall()
        except duckdb.Error as error:
            raise _failed(error) from error
        return int(copied[0][0])

    def offsets(self, table: ArchiveTable, partition: int) -> Iterator[int]:
        """The offsets of the rows of one partition, in rising order."""
        query = f'SELECT "offset" FROM {_quoted(table.view)} WHERE "partition" = {partition} ORDER BY "offset"'
        for batch in self.read(query):
            offsets: list[Any] = batch.column(0).to_pylist()
            yield from offsets

    def _add(self, table: ArchiveTable) -> None:
        name = _quoted(table.view)
        files = [str(table.folder.absolute() / file.path) for file in table.files()]
        if not files:
            self._connection.register(f"{table.view} without rows", table.columns.empty_table())
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {_quoted(f'{table.view} without rows')}")
            return
        listed = ", ".join(f"'{_escaped(file)}'" for file in files)
        columns = ", ".join(map(_quoted, table.columns.names))
        self._connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet([{listed}], {_HIVE})")

    def _query(self, text: str) -> str:
        """The one query in a text, without its semicolon."""
        try:
            found = duckdb.extract_statements(text)
        except duckdb.Error as error:
            raise _failed(error) from error
        if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
            raise UsageError(
                f"running SQL: there {'is' if len(found) == 1 else 'are'} {len(found)} statement(s) that are no query",
                hint="the archive is read only: write one SELECT",
            )
        return text.strip().rstrip(";")


def whole_days(table: ArchiveTable, first: date | None = None, last: date | None = None) -> str:
    """The query of the rows of a table from one day to another, both included, in the order of the topic."""
    conditions = [f"day >= DATE '{first}'"] * (first is not None) + [f"day <= DATE '{last}'"] * (last is not None)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f'SELECT * FROM {_quoted(table.view)}{where} ORDER BY "partition", "offset"'


def _kind(view: str) -> str:
    return next((kind for kind in _TOGETHER if view.startswith(f"{kind}_")), "")


def _failed(error: duckdb.Error) -> UsageError:
    return UsageError(
        f"running SQL: {first_line(error)}",
        hint="`lozenge archive ls` shows the tables",
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(text: str) -> str:
    return text.replace("'", "''")
