"""The rows of a table of the platform, with the columns that a detector declares of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.contracts.topics import Topics, platform_table
from lozenge.platform_tables.column_types import cast, column_types, sql_name
from lozenge.process.last_good import Contents
from lozenge.protocol import table_records
from lozenge.protocol.table_records import TableColumns, TableRecord, columns_of, decoded_row, rows_of

_CHUNK = 50_000
"""So many rows are made columns at once."""


@dataclass(frozen=True)
class PlatformRows:
    """The content of the table `name`, of which a detector reads the `columns`, as Spark DDL."""

    name: str
    columns: str

    @property
    def source(self) -> str:
        """Its name for people."""
        return f"platform table {self.name}"

    @property
    def creation(self) -> str:
        """What creates its topic."""
        return f"`lozenge up --table {self.name}` starts its loader, which creates it"

    def topic(self, topics: Topics) -> str:
        """The name of its topic."""
        return platform_table(topics, self.name).name

    def decode(self, key: bytes, value: bytes) -> TableRecord:
        """Its columns, or the bytes of a row; raises ValueError."""
        return table_records.decode(key, value)

    def contents(self, changed: int, records: Mapping[str, TableRecord]) -> Contents:
        """Its version, and every declared column that it does not have as it is declared."""
        loaded, rows = columns_of(records), sum(isinstance(record, bytes) for record in records.values())
        return Contents(
            table_records.version(changed, records),
            rows,
            {name: sql_name(kind) for name, kind in column_types(self.columns).items()},
            problems=tuple(self._problems(loaded)),
        )

    def write(self, records: Mapping[str, TableRecord], folder: Path) -> None:
        """Writes the declared columns of all rows, in the order of their keys; raises OSError."""
        types = column_types(self.columns)
        rows, schema = iter(rows_of(records).values()), pa.schema([*types.items()])
        folder.mkdir(parents=True)
        with pq.ParquetWriter(folder / "data.parquet", schema) as file:
            while part := [decoded_row(row) for row in islice(rows, _CHUNK)]:
                file.write_table(_typed(part, types))

    def _problems(self, loaded: TableColumns | None) -> Iterator[str]:
        if loaded is None:
            yield f"nothing was loaded yet; `lozenge table check {self.name}` reads its source"
            return
        declared = column_types(self.columns)
        try:
            found = column_types(loaded.columns)
        except ValueError as error:  # somebody else than the loader has written to the topic
            yield f"its columns cannot be read: {error}"
            return
        for name, kind in declared.items():
            if name not in found:
                yield f"it has no column {name}; its columns are {', '.join(found)}"
            elif found[name] != kind:
                yield f"its column {name} is {sql_name(found[name])}, and {sql_name(kind)} is declared"


def _typed(rows: Sequence[Mapping[str, str | None]], types: Mapping[str, pa.DataType]) -> pa.Table:
    columns = [cast(pa.array([row.get(name) for row in rows], pa.string()), kind) for name, kind in types.items()]
    return pa.table(columns, schema=pa.schema([*types.items()]))
