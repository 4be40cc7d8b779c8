"""Reads what Redis has of a cache, and writes nothing there."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

from lozenge.cache.entries import CachePosition, StoredEntry
from lozenge.cache.redis_server import RedisServer

_PAGE = 1_000
_FIELDS = "value", "partition", "epoch", "offset", "at"


class RedisReader:
    """The cache `name` on one server; used by one thread."""

    def __init__(self, url: str, name: str) -> None:
        """Connects with the first call. Raises ConfigError for a URL that is none."""
        self._server = RedisServer(url, name)

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheReader.positions`."""
        return self._server.positions()

    def entry(self, key: str) -> StoredEntry | None:
        """As `CacheReader.entry`."""
        return next(iter(self._read([self._server.key_of(key)])), None)

    def entries(self) -> Iterator[StoredEntry]:
        """As `CacheReader.entries`: one that is written meanwhile may come twice."""
        cursor, pattern = 0, f"{self._server.prefix}*"
        while True:
            cursor, names = self._server.call(partial(self._server.client.scan, cursor, pattern, _PAGE))
            yield from self._read(names)
            if not cursor:
                return

    def close(self) -> None:
        """Closes the connection."""
        self._server.close()

    def _read(self, names: Sequence[str]) -> list[StoredEntry]:
        """The entries of keys of the server; those that have expired meanwhile are skipped."""
        pipeline = self._server.client.pipeline(transaction=False)
        for name in names:
            pipeline.hmget(name, _FIELDS)
            pipeline.pttl(name)
        answers, now = self._server.call(pipeline.execute), int(time.time() * 1000)
        found = []
        for name, (value, partition, epoch, offset, at), left in zip(names, answers[::2], answers[1::2], strict=True):
            if offset is not None:
                expires_at = now + left if left >= 0 else None
                key = name.removeprefix(self._server.prefix)
                found.append(StoredEntry(key, value, int(partition), int(epoch), int(offset), int(at), expires_at))
        return found
