"""What a cache has, as any client of its server finds it: no code of the cache reads it."""

from contextlib import closing
from typing import Any

from lozenge.cache.entries import unavailable

_KEYS = 1_000
"""Read at once."""


def values_of(url: str, cache: str) -> dict[str, str]:
    """The JSON of each key of a cache on a server; raises CacheUnavailable."""
    return _of_postgres(url, cache) if url.startswith("postgresql://") else _of_redis(url, cache)


def _of_redis(url: str, cache: str) -> dict[str, str]:
    import redis

    prefix = f"{{{cache}}}:"
    found: dict[str, str | None] = {}
    try:
        client: Any
        with closing(redis.Redis.from_url(url, decode_responses=True)) as client:
            keys = list(client.scan_iter(f"{prefix}*", count=_KEYS))
            for begin in range(0, len(keys), _KEYS):
                some = keys[begin : begin + _KEYS]
                asked = client.pipeline(transaction=False)
                for key in some:
                    asked.hget(key, "value")
                found |= zip(some, asked.execute(), strict=True)
    except redis.RedisError as error:
        raise unavailable(cache, error) from error
    return {key.removeprefix(prefix): value for key, value in found.items() if value is not None}


def _of_postgres(url: str, cache: str) -> dict[str, str]:
    import psycopg
    from psycopg import sql

    asked = sql.SQL("SELECT key, value::text FROM lozenge_cache.{}").format(sql.Identifier(cache))
    try:
        with psycopg.connect(url) as connection:
            return dict(connection.execute(asked).fetchall())
    except psycopg.Error as error:
        raise unavailable(cache, error) from error
