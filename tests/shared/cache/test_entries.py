"""What only looks at a cache finds each entry with its place, and leaves nothing on the server."""

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from lozenge.cache.entries import CacheEntry, CachePosition, CacheUnavailable, StoredEntry
from lozenge.cache.postgres_reader import PostgresReader
from lozenge.cache.postgres_store import PostgresStore
from lozenge.cache.redis_reader import RedisReader
from lozenge_deploy.local.redis_server import LocalRedis
from tests.shared.cache.conftest import Cache

NOW = int(time.time() * 1000)
HOUR = 3_600_000


def at(offset: int, epoch: int = 1) -> CachePosition:
    return CachePosition("topic", epoch, offset)


def test_an_entry_is_found_with_the_place_of_its_record(cache: Cache) -> None:
    store, reader = cache.store(), cache.reader()
    entries = [CacheEntry("a", '{"n":1.5}', 6, NOW), CacheEntry("", "2", 7, NOW), CacheEntry("gone", None, 8, NOW)]
    assert store.write(3, None, at(9, epoch=2), entries)
    found = reader.entry("a")
    assert found is not None
    assert found._replace(value=(found.value or "").replace(" ", "")) == StoredEntry(
        "a", '{"n":1.5}', 3, 2, 6, NOW, None
    )
    assert {each.key: each.value for each in reader.entries()}.keys() == {"a", "", "gone"}
    deleted = reader.entry("gone")
    assert deleted is not None
    assert (deleted.value, abs((deleted.expires_at or 0) - NOW - 24 * HOUR) < 10_000) == (None, True)
    assert reader.entry("never") is None
    assert reader.positions() == store.positions() == {3: at(9, epoch=2)}


def test_the_expiry_of_an_entry_is_that_of_its_record(cache: Cache) -> None:
    assert cache.store(ttl=timedelta(hours=1)).write(0, None, at(1), [CacheEntry("a", "1", 0, NOW)])
    found = cache.reader().entry("a")
    assert found is not None
    assert abs((found.expires_at or 0) - NOW - HOUR) < 10_000


def test_all_entries_are_found_whatever_their_number(cache: Cache) -> None:
    names = [f"k{number}" for number in range(2_500)]
    store = cache.store()
    assert store.write(0, None, at(9), [CacheEntry(name, "1", number, NOW) for number, name in enumerate(names)])
    assert Counter(each.key for each in cache.reader().entries()).keys() == {*names}


def test_a_cache_that_never_ran_has_nothing_and_gets_nothing(cache: Cache) -> None:
    reader = cache.reader()
    assert (reader.positions(), reader.entry("a"), list(reader.entries())) == ({}, None, [])
    if cache.kind is PostgresStore:
        with psycopg.connect(cache.url) as connection:
            made = connection.execute("SELECT to_regclass(%s)", [f"lozenge_cache.{cache.name}_entries"]).fetchall()
        assert made == [(None,)]


def test_a_user_that_may_only_read_is_enough(database: str) -> None:
    cache = Cache(database, PostgresStore)
    assert cache.store().write(0, None, at(1), [CacheEntry("a", "1", 0, NOW)])
    cache.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE onlooker LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA lozenge_cache TO onlooker")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA lozenge_cache TO onlooker")
    reader = PostgresReader(psycopg.conninfo.make_conninfo(database, user="onlooker"), cache.name)
    assert [each.key for each in reader.entries()] == ["a"]
    reader.close()


def test_a_server_that_is_away_is_said(tmp_path: Path) -> None:
    reader = RedisReader(LocalRedis(tmp_path).url, "away")
    with pytest.raises(CacheUnavailable) as refused:
        reader.entry("a")
    assert refused.value.exit_code == 3
