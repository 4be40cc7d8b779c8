"""The rows that a query of a database returns: one query in one transaction, which cannot write where that is known."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from lozenge.contracts.display_text import shown
from lozenge.errors import ConfigError
from lozenge_upstream.tables.source_rows import PART_ROWS, Part, SourceUnavailable, places

CONNECT_SECONDS = 10


class DatabaseRows:
    """The rows of `query`, read again at each look, as they come."""

    def __init__(self, table: str, address: str, query: str) -> None:
        """Raises ConfigError for an address that is none, and for a driver that is not installed."""
        try:
            self._url = make_url(address)
            self._engine = create_engine(self._url, poolclass=NullPool, connect_args=_connect_args(self._url))
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"opening the source of the table {table}: the driver {error.name} is not installed",
                hint="install it where the loader runs; `lozenge-platform[postgres]` has the one of PostgreSQL",
            ) from error
        except SQLAlchemyError as error:
            raise ConfigError(
                f"opening the source of the table {table}: {_said(error)}",
                hint="write it as SQLAlchemy does, such as postgresql+psycopg://host/database",
            ) from error
        self._query = query
        self.name = _without_login(self._url)

    def version(self) -> str | None:
        """A database names no version."""
        return None

    def parts(self, columns: Sequence[str]) -> Generator[Part, None, None]:
        """All rows by one query, read as a stream."""
        self._require_file()
        try:
            with self._engine.connect() as connection:
                found = _reading(connection).execute(text(self._query))
                at = places(columns, [*found.keys()])
                for rows in found.partitions(PART_ROWS):
                    yield [[row[place] for row in rows] for place in at]
        except SQLAlchemyError as error:
            raise SourceUnavailable(f"reading {self.name}: {_said(error)}") from error

    def _require_file(self) -> None:
        """SQLite would create an empty database where there is none."""
        file = self._url.database or ""
        if self._url.get_backend_name() == "sqlite" and file not in ("", ":memory:") and not Path(file).exists():
            raise SourceUnavailable(f"reading {self.name}: there is no file {file}")


def _without_login(url: URL) -> str:
    return URL.create(url.drivername, host=url.host, port=url.port, database=url.database).render_as_string()


def _reading(connection: Connection) -> Connection:
    options: dict[str, Any] = {"stream_results": True, "yield_per": PART_ROWS}
    if connection.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    return connection.execution_options(**options)


def _connect_args(url: URL) -> dict[str, Any]:
    return {"connect_timeout": CONNECT_SECONDS} if url.get_driver_name() in ("psycopg", "psycopg2") else {}


def _said(error: SQLAlchemyError) -> str:
    """The sentence of the driver, in a line and without logins."""
    own = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return shown(" ".join(str(own).split())[:500] or type(own).__name__)
