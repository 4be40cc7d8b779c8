"""A database of PostgreSQL that has a cache: one connection, and what its errors mean."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lozenge.cache.entries import CALL_SECONDS, CachePosition, refused, unavailable
from lozenge.errors import ConfigError, UsageError

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_POSITIONS = 'SELECT "partition", topic_id, epoch, "offset" FROM lozenge_cache.positions WHERE cache = %s'
LONGEST_NAME = 50
"""PostgreSQL cuts names off at 63 bytes, which tables of two caches may share then."""


class PostgresDatabase:
    """The database of the cache `name`; used by one thread. `{name}` in a text of SQL is its name."""

    def __init__(self, url: str, name: str, tables: str = "") -> None:
        """Connects with the first call, which makes the `tables`.

        Raises UsageError without the driver, ConfigError for a long name.
        """
        if len(name) > LONGEST_NAME:
            raise ConfigError(
                f"opening the cache {name}: its name has {len(name)} characters, and PostgreSQL would cut it off",
                hint=f"rename the folder of the sink: {LONGEST_NAME} at most",
            )
        try:
            import psycopg
        except ImportError as error:
            raise UsageError(
                f"opening the cache {name}: the driver of PostgreSQL is not installed",
                hint='`pip install "psycopg[binary]"`',
            ) from error
        self._driver = psycopg
        self._url, self.name, self._tables = url, name, tables
        self._connection: psycopg.Connection[Any] | None = None

    def sql(self, template: str) -> Any:
        """SQL with the name of the cache."""
        return self._driver.sql.SQL(template.replace("{name}", self.name))

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`; none where no cache has made its tables yet."""
        return {partition: CachePosition(*rest) for partition, *rest in self.rows(_POSITIONS, self.name)}

    def rows(self, template: str, *values: str | None) -> list[Any]:
        """The rows of a query; none where no cache has made its tables yet. Raises as `call` does."""

        def asked(connection: "psycopg.Connection[Any]") -> list[Any]:
            if (
                connection.execute("SELECT to_regclass(%s)", [f"lozenge_cache.{self.name}_entries"]).fetchall()[0][0]
                is None
            ):
                return []
            return connection.execute(self.sql(template), values).fetchall()

        return self.call(asked)

    def call(self, call: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """The result of `call` in a transaction of its own; raises CacheUnavailable, ConfigError if it is refused."""
        try:
            connection = self._opened()
            with connection.transaction():
                return call(connection)
        except (self._driver.OperationalError, self._driver.errors.ReadOnlySqlTransaction) as error:
            self.close()
            if isinstance(error, self._driver.errors.InvalidPassword | self._driver.errors.InvalidCatalogName):
                raise refused(self.name, error) from error
            raise unavailable(self.name, error) from error
        except self._driver.ProgrammingError as error:
            raise refused(self.name, error) from error

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            connection = self._driver.connect(self._url, autocommit=True, connect_timeout=int(CALL_SECONDS))
            try:
                if self._tables:
                    with connection.transaction():
                        connection.execute(self.sql(self._tables))
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection
