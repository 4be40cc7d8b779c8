"""A cache in PostgreSQL: the view `lozenge_cache.NAME` has a row for each key.

The table behind it, `NAME_entries`, also has tombstones and the place of each record. `positions` has how far each
partition is cached. A transaction writes both.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes
from lozenge.cache.json_values import without_nul
from lozenge.cache.postgres_database import PostgresDatabase
from lozenge.protocol.data_subject import DataSubject

if TYPE_CHECKING:
    import psycopg

_TABLES = """
SELECT pg_advisory_xact_lock(hashtext('lozenge_cache'));
CREATE SCHEMA IF NOT EXISTS lozenge_cache;
CREATE TABLE IF NOT EXISTS lozenge_cache.positions (
  cache text, "partition" int, topic_id text NOT NULL, epoch int NOT NULL, "offset" bigint NOT NULL,
  PRIMARY KEY (cache, "partition"));
CREATE TABLE IF NOT EXISTS lozenge_cache.{name}_entries (
  key text PRIMARY KEY, value jsonb, "partition" int NOT NULL, epoch int NOT NULL, "offset" bigint NOT NULL,
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
INSERT INTO lozenge_cache.{name}_entries AS old (key, value, "partition", epoch, "offset", at, expires_at)
SELECT key, value::jsonb, %s, %s, "offset", to_timestamp(at / 1000.0), to_timestamp(until / 1000.0)
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (key, value, "offset", at, until)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, "partition" = excluded."partition",
  epoch = excluded.epoch, "offset" = excluded."offset", at = excluded.at, expires_at = excluded.expires_at
WHERE (old.epoch, old."offset") < (excluded.epoch, excluded."offset")
"""
_NAMING = """
SELECT key, value::text FROM lozenge_cache.{name}_entries
WHERE strpos(key, %s) > 0 OR strpos(value::text, %s) > 0 FOR UPDATE
"""
_ERASE = "DELETE FROM lozenge_cache.{name}_entries WHERE key = ANY(%s)"
_EXPIRED = "DELETE FROM lozenge_cache.{name}_entries WHERE expires_at < now()"


class PostgresStore:
    """The cache `name` in one database; used by one thread. Its schema and tables are made by the first call."""

    def __init__(self, url: str, name: str, lifetimes: Lifetimes) -> None:
        """Connects with the first call. Raises as `PostgresDatabase` does."""
        self._database, self._lifetimes = PostgresDatabase(url, name, _TABLES), lifetimes

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        return self._database.positions()

    def write(
        self, partition: int, seen: CachePosition | None, reached: CachePosition, entries: Sequence[CacheEntry]
    ) -> bool:
        """As `CacheStore.write`, in one transaction."""

        def written(connection: "psycopg.Connection[Any]") -> bool:
            place = [*reached, self._database.name, partition]
            moved = connection.execute(_FIRST, place) if seen is None else connection.execute(_NEXT, [*place, *seen])
            if moved.rowcount and entries:
                connection.execute(self._database.sql(_ENTRIES), [partition, reached.epoch, *self._columns(entries)])
            return bool(moved.rowcount)

        return self._database.call(written)

    def delete_expired(self) -> int:
        """As `CacheStore.delete_expired`."""
        return self._database.call(lambda connection: connection.execute(self._database.sql(_EXPIRED)).rowcount)

    def erase(self, subject: DataSubject, *, dry_run: bool) -> int:
        """As `CacheStore.erase`, in one transaction."""

        def erased(connection: "psycopg.Connection[Any]") -> int:
            naming = self._database.sql(_NAMING)
            likely = connection.execute(naming, [subject.value, subject.value]).fetchall()
            keys = [key for key, value in likely if subject.is_in(key) or subject.is_in(value or "")]
            if not dry_run:
                connection.execute(self._database.sql(_ERASE), [keys])
            return len(keys)

        return self._database.call(erased)

    def close(self) -> None:
        """Closes the connection."""
        self._database.close()

    def _columns(self, entries: Sequence[CacheEntry]) -> list[list[Any]]:
        return [
            [entry.key for entry in entries],
            [None if entry.value is None else without_nul(entry.value) for entry in entries],
            [entry.offset for entry in entries],
            [entry.at for entry in entries],
            [self._lifetimes.expires_at(entry) for entry in entries],
        ]
