"""Reads what PostgreSQL has of a cache, and creates nothing there."""

from collections.abc import Iterator

from lozenge.cache.entries import CachePosition, StoredEntry
from lozenge.cache.postgres_database import PostgresDatabase

_PAGE = 1_000
_ENTRIES = """
SELECT key, value::text, "partition", epoch, "offset", round(extract(epoch FROM at) * 1000)::bigint,
  round(extract(epoch FROM expires_at) * 1000)::bigint
FROM lozenge_cache.{name}_entries
"""


class PostgresReader:
    """The cache `name` in one database; used by one thread."""

    def __init__(self, url: str, name: str) -> None:
        """Connects with the first call. Raises as `PostgresDatabase` does."""
        self._database = PostgresDatabase(url, name)

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheReader.positions`."""
        return self._database.positions()

    def entry(self, key: str) -> StoredEntry | None:
        """As `CacheReader.entry`."""
        rows = self._database.rows(f"{_ENTRIES} WHERE key = %s", key)
        return StoredEntry(*rows[0]) if rows else None

    def entries(self) -> Iterator[StoredEntry]:
        """As `CacheReader.entries`, each once."""
        after: str | None = None
        following = f"{_ENTRIES} WHERE %s::text IS NULL OR key > %s ORDER BY key LIMIT {_PAGE}"
        while rows := self._database.rows(following, after, after):
            yield from (StoredEntry(*row) for row in rows)
            after = rows[-1][0]

    def close(self) -> None:
        """Closes the connection."""
        self._database.close()
