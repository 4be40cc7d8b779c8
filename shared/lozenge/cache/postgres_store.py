"""A cache in PostgreSQL: the view `lozenge_cache.NAME` has a row for each key.

The table behind it, `NAME_entries`, also has tombstones and the offset of each entry. `positions` has how far each
partition is cached. A transaction writes both.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lozenge.cache.entries import CALL_SECONDS, CacheEntry, CachePosition, Lifetimes, refused, unavailable
from lozenge.errors import ConfigError, UsageError

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
LONGEST_NAME = 50
"""PostgreSQL cuts names off at 63 bytes, which tables of two caches may share then."""
_NUL = "\\u0000"
_TABLES = """
SELECT pg_advisory_xact_lock(hashtext('lozenge_cache'));
CREATE SCHEMA IF NOT EXISTS lozenge_cache;
CREATE TABLE IF NOT EXISTS lozenge_cache.positions (
  cache text, "partition" int, topic_id text NOT NULL, epoch int NOT NULL, "offset" bigint NOT NULL,
  PRIMARY KEY (cache, "partition"));
CREATE TABLE IF NOT EXISTS lozenge_cache.{name}_entries (
  key text PRIMARY KEY, value jsonb, epoch int NOT NULL, "offset" bigint NOT NULL,
  at timestamptz NOT NULL, expires_at timestamptz);
CREATE INDEX IF NOT EXISTS {name}_expires ON lozenge_cache.{name}_entries (expires_at);
CREATE OR REPLACE VIEW lozenge_cache.{name} AS SELECT key, value, at FROM lozenge_cache.{name}_entries
  WHERE value IS NOT NULL AND (expires_at IS NULL OR expires_at > now());
"""
_FIRST = """
INSERT INTO lozenge_cache.positions (topic_id, epoch, "offset", cache, "partition") VALUES (%s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
_NEXT = """
UPDATE lozenge_cache.positions SET topic_id = %s, epoch = %s, "offset" = %s
WHERE cache = %s AND "partition" = %s AND topic_id = %s AND epoch = %s AND "offset" = %s
"""
_ENTRIES = """
INSERT INTO lozenge_cache.{name}_entries AS old (key, value, epoch, "offset", at, expires_at)
SELECT key, value::jsonb, %s, "offset", to_timestamp(at / 1000.0), to_timestamp(until / 1000.0)
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (key, value, "offset", at, until)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, epoch = excluded.epoch, "offset" = excluded."offset",
  at = excluded.at, expires_at = excluded.expires_at
WHERE (old.epoch, old."offset") < (excluded.epoch, excluded."offset")
"""
_EXPIRED = "DELETE FROM lozenge_cache.{name}_entries WHERE expires_at < now()"


class PostgresStore:
    """The cache `name` in one database; used by one thread. Its schema and tables are made by the first call."""

    def __init__(self, url: str, name: str, lifetimes: Lifetimes) -> None:
        """Connects with the first call. Raises UsageError without the driver, ConfigError for a long name."""
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
        self._url, self._name, self._lifetimes = url, name, lifetimes
        self._connection: psycopg.Connection[Any] | None = None

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        asked = 'SELECT "partition", topic_id, epoch, "offset" FROM lozenge_cache.positions WHERE cache = %s'
        rows = self._call(lambda connection: connection.execute(asked, [self._name]).fetchall())
        return {partition: CachePosition(*rest) for partition, *rest in rows}

    def write(
        self, partition: int, seen: CachePosition | None, reached: CachePosition, entries: Sequence[CacheEntry]
    ) -> bool:
        """As `CacheStore.write`, in one transaction."""

        def written(connection: "psycopg.Connection[Any]") -> bool:
            place = [*reached, self._name, partition]
            moved = connection.execute(_FIRST, place) if seen is None else connection.execute(_NEXT, [*place, *seen])
            if moved.rowcount and entries:
                connection.execute(self._sql(_ENTRIES), [reached.epoch, *self._columns(entries)])
            return bool(moved.rowcount)

        return self._call(written)

    def delete_expired(self) -> int:
        """As `CacheStore.delete_expired`."""
        return self._call(lambda connection: connection.execute(self._sql(_EXPIRED)).rowcount)

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _columns(self, entries: Sequence[CacheEntry]) -> list[list[Any]]:
        return [
            [entry.key for entry in entries],
            [None if entry.value is None else _without_nul(entry.value) for entry in entries],
            [entry.offset for entry in entries],
            [entry.at for entry in entries],
            [self._lifetimes.expires_at(entry) for entry in entries],
        ]

    def _sql(self, template: str) -> Any:
        return self._driver.sql.SQL(template.replace("{name}", self._name))

    def _call(self, call: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """The result of `call` in a transaction of its own."""
        try:
            connection = self._opened()
            with connection.transaction():
                return call(connection)
        except (self._driver.OperationalError, self._driver.errors.ReadOnlySqlTransaction) as error:
            self.close()
            if isinstance(error, self._driver.errors.InvalidPassword | self._driver.errors.InvalidCatalogName):
                raise refused(self._name, error) from error
            raise unavailable(self._name, error) from error
        except self._driver.ProgrammingError as error:
            raise refused(self._name, error) from error

    def _opened(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            connection = self._driver.connect(self._url, autocommit=True, connect_timeout=int(CALL_SECONDS))
            try:
                with connection.transaction():
                    connection.execute(self._sql(_TABLES))
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _without_nul(value: str) -> str:
    """JSON without the character NUL, which `jsonb` refuses; it becomes the replacement character."""
    if _NUL not in value:
        return value
    return msgspec.json.encode(_replaced(msgspec.json.decode(value))).decode()


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {_replaced(name): _replaced(each) for name, each in value.items()}
    return [_replaced(each) for each in value] if isinstance(value, list) else value
