"""A table of the platform: `table.toml` says where its rows are, what they are, and how they may change."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from lozenge import ddl
from lozenge.apps import table_app
from lozenge.contracts.display_text import VisibleText
from lozenge.contracts.topics import LIST_NAME
from lozenge.durations import LONGEST, TextDuration
from lozenge.platform_tables.column_types import column_types
from lozenge.process.env_settings import require_no_password, with_variables
from lozenge.process.last_good import Bounds

MOST_ROWS = 1_000_000
"""A job holds the rows in memory, and broadcasts a table that it joins."""
_ALWAYS = Field(validate_default=True)


class PlatformTable(BaseModel):
    """What `table.toml` declares, and the name of its folder.

    - `source`: the SQLAlchemy URL of a database, with a `query`. `${NAME}` in it is a variable of the environment: a
      password is in no file.
    - `path`: a folder of Delta, or a file or folder of Parquet. One of `source` and `path`.
    - `columns`: names and types as Spark DDL. A column that is NOT NULL, or part of the `key`, has a value in each row.
    - `key`: the columns that identify a row.
    - `every`: the time between two looks at the source. `rows`: the most that it may have.
    - `shrinks_to`, `grows_to`: the fewest and the most rows of a new version, as a multiple of the last good one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{LIST_NAME}$")]
    title: VisibleText
    owner: VisibleText
    source: str = ""
    query: Annotated[str, _ALWAYS] = ""
    path: Annotated[str, _ALWAYS] = ""
    columns: str
    key: tuple[str, ...]
    every: Annotated[TextDuration, Field(ge=timedelta(seconds=1), le=LONGEST)] = timedelta(minutes=5)
    rows: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 100_000
    shrinks_to: Annotated[float, Field(ge=0, le=1)] = 0.5
    grows_to: Annotated[float, Field(ge=1)] = 10.0
    may_be_empty: bool = False

    @field_validator("source")
    @classmethod
    def _is_address(cls, source: str) -> str:
        if source and "://" not in source and not source.startswith("${"):
            raise ValueError("it is no URL of SQLAlchemy, such as postgresql+psycopg://host/database")
        if source.startswith("sqlite:///") and not source.startswith("sqlite:////"):
            raise ValueError("write the whole path of the file, as in sqlite:////data/limits.db")
        return require_no_password(source)

    @field_validator("query")
    @classmethod
    def _goes_with_source(cls, query: str, info: ValidationInfo) -> str:
        if "source" in info.data and bool(query.strip()) != bool(info.data["source"]):
            raise ValueError("a database has a source and a query; a folder or file has neither")
        return query

    @field_validator("path")
    @classmethod
    def _is_the_only_one(cls, path: str, info: ValidationInfo) -> str:
        if "source" in info.data and bool(path.strip()) == bool(info.data["source"]):
            raise ValueError("name one of source and path")
        require_no_password(path)
        if path and not path.startswith(("/", "${")) and "://" not in path:
            raise ValueError("write the whole path, which begins with / or a scheme such as s3://")
        return path

    @field_validator("columns")
    @classmethod
    def _can_be_texts(cls, columns: str) -> str:
        column_types(columns, "table of the platform")
        return columns

    @field_validator("key")
    @classmethod
    def _is_of_columns(cls, key: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not key or len({*key}) < len(key):
            raise ValueError("name each column that identifies a row, once")
        declared = column_types(info.data["columns"]) if "columns" in info.data else {}
        if declared and (missing := [name for name in key if name not in declared]):
            raise ValueError(f"there is no column {', '.join(missing)}; there are {', '.join(declared)}")
        return key

    @property
    def app(self) -> str:
        """The name of its loader in metrics and logs."""
        return table_app(self.name)

    @property
    def bounds(self) -> Bounds:
        """How a new version may differ from the last good one."""
        return Bounds(self.shrinks_to, self.grows_to, self.may_be_empty)

    @property
    def required(self) -> frozenset[str]:
        """The columns that have a value in each row."""
        return ddl.not_null(self.columns) | frozenset(self.key)

    def address(self, environment: Mapping[str, str] = os.environ) -> str:
        """`source` or `path` with its variables; raises ConfigError for each that is missing."""
        return with_variables(
            self.source or self.path,
            environment,
            doing=f"opening the source of the table {self.name}",
            hint="set them where the loader is started",
        )
