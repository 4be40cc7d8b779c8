"""Opens the store that a cache declares."""

from lozenge.cache.entries import CacheStore, Lifetimes
from lozenge.sink_declarations.cache_sink import CacheSink


def store_of(sink: CacheSink) -> CacheStore:
    """The store of a sink, which connects when it is called.

    Raises ConfigError for a URL that is none or lacks a variable, UsageError if its driver is not installed.
    """
    url, lifetimes = sink.address(), Lifetimes(sink.ttl, sink.tombstone_ttl)
    if url.startswith("postgresql://"):
        from lozenge.cache.postgres_store import PostgresStore

        return PostgresStore(url, sink.name, lifetimes)
    from lozenge.cache.redis_store import RedisStore

    return RedisStore(url, sink.name, lifetimes)
