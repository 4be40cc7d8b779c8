"""`[tool.lozenge.tables.NAME]`: a file, a reference list or a table of the platform that a detector declares."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lozenge.contracts.topics import LIST_NAME
from lozenge.process.last_good import Bounds
from lozenge.protocol import list_entries


class Table(BaseModel):
    """A reference table: a CSV file with a header, a Parquet file, a reference list, or a table of the platform.

    A running job takes a new version once all of it is good. Otherwise the last good one stays in force.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = ""
    """The file, in the detector's folder or at an absolute path. A file in the folder belongs to the release. A file
    at an absolute path may be replaced while the job runs (write a new one, then rename it)."""

    list: Annotated[str, Field(pattern=f"^({LIST_NAME})?$")] = ""
    """In place of a file: the name of a list that people change by `lozenge list`. Its columns are `value`, `reason`,
    `author`, `added_at` and `expires_at`. A change is in force within seconds."""

    table: Annotated[str, Field(pattern=f"^({LIST_NAME})?$")] = ""
    """In place of a file: the name of a table of the platform, which is loaded from a database or a lake
    (`upstream/tables/NAME`). It is in force within seconds of its load."""

    columns: str = ""
    """Names and types of a CSV file's columns, as Spark DDL: "country string, most decimal(18,4)". They are found by
    the names in its header; one that is NOT NULL has a value in each row. Of a table of the platform, those that the
    detector reads, with the types that they have there. A Parquet file has its own."""

    shrinks_to: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The fewest rows that a new version may have, as a share of those of the version in force, and the fewest values
    of each column. A version with fewer than ten rows may be followed by one of any size."""

    grows_to: Annotated[float, Field(ge=1)] = 10.0
    """The most rows that a new version may have, as a multiple of those of the version in force."""

    may_be_empty: bool = False
    """Whether a version without rows is good."""

    @property
    def bounds(self) -> Bounds:
        """How a new version may differ from the version in force."""
        return Bounds(self.shrinks_to, self.grows_to, self.may_be_empty)

    @property
    def ddl(self) -> str:
        """The columns as Spark DDL; "" for those of a Parquet file, which says them itself."""
        return list_entries.COLUMNS if self.list else self.columns

    @property
    def followed(self) -> str:
        """The list or platform table that it is, as "list NAME" or "table NAME"; "" for a file."""
        return f"list {self.list}" if self.list else f"table {self.table}" if self.table else ""

    @model_validator(mode="after")
    def _is_one_of_three(self) -> "Table":
        if sum(map(bool, (self.path, self.list, self.table))) != 1:
            raise ValueError('a table has one of path = "FILE", list = "NAME" and table = "NAME"')
        declared = {name for name, field in type(self).model_fields.items() if getattr(self, name) != field.default}
        if self.list and (more := declared - {"list"}):
            raise ValueError(f"a list takes no {', '.join(sorted(more))}: a file does")
        if self.table and (more := declared - {"table", "columns"}):
            raise ValueError(f"a table of the platform takes no {', '.join(sorted(more))}: its table.toml does")
        return self

    @model_validator(mode="after")
    def _platform_table_has_columns(self) -> "Table":
        if self.table and not self.columns:
            raise ValueError('table = "NAME" needs columns = "name type, ...": those that the detector reads')
        if self.table:
            from lozenge.platform_tables.column_types import column_types  # commands read manifests without Arrow

            column_types(self.columns, "table of the platform")
        return self

    @model_validator(mode="after")
    def _csv_has_columns(self) -> "Table":
        if self.table:
            return self
        if (packed := Path(self.path.lower()).suffix) in (".gz", ".bz2", ".xz", ".zst", ".zip"):
            raise ValueError(f"a {packed} file is not read: unpack it")
        if self.path.lower().endswith(".csv") == bool(self.columns):
            return self
        raise ValueError('a .csv table needs columns = "name type, ..." and no other table takes it')


def lists_of(tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The names of the reference lists among the declared `tables`, in order."""
    return tuple(sorted({table.list for table in tables.values() if table.list}))


def platform_tables_of(tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The names of the tables of the platform among the declared `tables`, in order."""
    return tuple(sorted({table.table for table in tables.values() if table.table}))
