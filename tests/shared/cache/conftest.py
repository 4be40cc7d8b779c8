"""Real servers for stores of caches; each test has a cache of its own on them."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from lozenge.cache.entries import CacheReader, CacheStore, Lifetimes
from lozenge.cache.postgres_reader import PostgresReader
from lozenge.cache.postgres_store import PostgresStore
from lozenge.cache.redis_reader import RedisReader
from lozenge.cache.redis_store import RedisStore
from lozenge_deploy.demo.sinks.cache_contents import values_of
from lozenge_deploy.local.redis_server import LocalRedis
from tests import postgres


class Cache:
    """A cache on a server, with what its clients read."""

    def __init__(self, url: str, kind: type[RedisStore] | type[PostgresStore]) -> None:
        self.url, self.kind, self.name = url, kind, f"cache_{uuid4().hex[:8]}"
        self._stores: list[CacheStore] = []
        self._readers: list[CacheReader] = []

    def store(self, ttl: timedelta | None = None, tombstone: timedelta = timedelta(days=1)) -> CacheStore:
        """A connection of its own."""
        store = self.kind(self.url, self.name, Lifetimes(ttl, tombstone))
        self._stores.append(store)
        return store

    def reader(self) -> CacheReader:
        """What only looks, by a connection of its own."""
        reader = (PostgresReader if self.kind is PostgresStore else RedisReader)(self.url, self.name)
        self._readers.append(reader)
        return reader

    def read(self) -> dict[str, str]:
        """The value of each key, as text, as a client finds it."""
        if self.kind is PostgresStore:
            with psycopg.connect(self.url) as connection:
                rows = connection.execute(f"SELECT key, value::text FROM lozenge_cache.{self.name}").fetchall()
            return {key: value.replace('": ', '":').replace(", ", ",") for key, value in rows}
        return values_of(self.url, self.name)

    def close(self) -> None:
        for store in self._stores:
            store.close()
        for reader in self._readers:
            reader.close()


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRedis]:
    with LocalRedis(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres.server(tmp_path_factory.mktemp("postgres") / "data") as running:
        yield postgres.database(running, "caches").replace("postgresql+psycopg://", "postgresql://")


@pytest.fixture(params=["redis", "postgresql"])
def cache(request: pytest.FixtureRequest) -> Iterator[Cache]:
    if request.param == "redis":
        made = Cache(request.getfixturevalue("valkey").url, RedisStore)
    else:
        made = Cache(request.getfixturevalue("database"), PostgresStore)
    yield made
    made.close()
