"""Opens the server that a cache declares, to write or to look."""

from lozenge.cache.entries import CacheReader, CacheStore, Lifetimes
from lozenge.sink_declarations.cache_sink import CacheSink


def store_of(sink: CacheSink) -> CacheStore:
    """The store of a sink, which connects when it is called.

    Raises ConfigError for a URL that is none or lacks a variable, UsageError if its driver is not installed.
    """
    url, lifetimes = sink.address(), lifetimes_of(sink)
    if url.startswith("postgresql://"):
        from lozenge.cache.postgres_store import PostgresStore

        return PostgresStore(url, sink.name, lifetimes)
    from lozenge.cache.redis_store import RedisStore

    return RedisStore(url, sink.name, lifetimes)


def reader_of(sink: CacheSink) -> CacheReader:
    """What the server of a sink has of it, by a connection that creates nothing; raises as `store_of` does."""
    url = sink.address()
    if url.startswith("postgresql://"):
        from lozenge.cache.postgres_reader import PostgresReader

        return PostgresReader(url, sink.name)
    from lozenge.cache.redis_reader import RedisReader

    return RedisReader(url, sink.name)


def lifetimes_of(sink: CacheSink) -> Lifetimes:
    """How long the entries of a sink stay."""
    return Lifetimes(sink.ttl, sink.tombstone_ttl)
