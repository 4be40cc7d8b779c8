"""Entries and position of a cache are one, in every store; an older record never replaces a newer one."""

import socket
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from lozenge.cache.entries import CacheEntry, CachePosition, CacheUnavailable, Lifetimes
from lozenge.cache.postgres_store import PostgresStore
from lozenge.cache.redis_store import RedisStore
from lozenge.errors import ConfigError
from lozenge.process.waiting import wait_until
from lozenge.protocol.data_subject import DataSubject
from lozenge_deploy.local.redis_server import LocalRedis
from tests.shared.cache.conftest import Cache

NOW = int(time.time() * 1000)
SECOND = timedelta(seconds=1)
FOR_EVER = Lifetimes(None, SECOND)


def at(offset: int, epoch: int = 1) -> CachePosition:
    return CachePosition("topic", epoch, offset)


def entry(key: str, offset: int, value: str | None = None, when: int = NOW) -> CacheEntry:
    return CacheEntry(key, f'{{"n":{offset}}}' if value is None else value, offset, when)


def test_entries_and_position_are_written_as_one(cache: Cache) -> None:
    store = cache.store()
    assert store.positions() == {}
    assert store.write(0, None, at(3), [entry("a", 1), entry("b", 2)])
    assert store.write(5, None, at(7), [entry("ü|é", 6)])
    assert store.write(0, at(3), at(4), [entry("a", 3)])
    assert cache.read() == {"a": '{"n":3}', "b": '{"n":2}', "ü|é": '{"n":6}'}
    assert store.positions() == {0: at(4), 5: at(7)}
    assert cache.store().positions() == store.positions()


def test_a_write_from_another_position_changes_nothing(cache: Cache) -> None:
    store = cache.store()
    assert store.write(0, None, at(3), [entry("a", 1)])
    for seen in (None, at(2), at(3, epoch=2), CachePosition("another", 1, 3)):
        assert not store.write(0, seen, at(9), [entry("a", 8), entry("c", 8)])
    assert cache.read() == {"a": '{"n":1}'}
    assert store.positions() == {0: at(3)}


def test_an_older_record_replaces_no_newer_one_and_a_newer_topic_replaces_all(cache: Cache) -> None:
    store = cache.store()
    assert store.write(0, None, at(10), [entry("a", 9), entry("b", 2)])
    assert store.write(0, at(10), at(4), [entry("a", 3), entry("b", 3)])  # the position was put back
    assert cache.read() == {"a": '{"n":9}', "b": '{"n":3}'}
    assert store.write(0, at(4), at(1, epoch=2), [entry("a", 0)])
    assert cache.read()["a"] == '{"n":0}'


def test_a_position_moves_without_entries(cache: Cache) -> None:
    store = cache.store()
    assert store.write(0, None, at(3), [])
    assert store.write(0, at(3), at(5), [])
    assert store.positions() == {0: at(5)}


def test_a_deleted_key_is_gone_and_no_older_record_brings_it_back(cache: Cache) -> None:
    store = cache.store()
    assert store.write(0, None, at(6), [entry("a", 1), entry("b", 2)])
    assert store.write(0, at(6), at(7), [CacheEntry("a", None, 6, NOW)])
    assert cache.read() == {"b": '{"n":2}'}
    assert store.write(0, at(7), at(4), [entry("a", 3)])
    assert cache.read() == {"b": '{"n":2}'}
    assert store.write(0, at(4), at(9), [entry("a", 8)])
    assert cache.read() == {"a": '{"n":8}', "b": '{"n":2}'}


def test_entries_and_tombstones_are_forgotten_when_their_time_is_over(cache: Cache) -> None:
    store = cache.store(ttl=timedelta(hours=1), tombstone=SECOND)
    hours_ago = NOW - 2 * 3_600_000
    entries = [entry("old", 1, when=hours_ago), entry("new", 2), CacheEntry("gone", None, 3, NOW - 1_500)]
    assert store.write(0, None, at(6), entries)
    assert cache.read() == {"new": '{"n":2}'}
    forgotten = store.delete_expired()
    assert forgotten == (2 if cache.kind is PostgresStore else 0)
    assert store.write(0, at(6), at(4), [entry("gone", 1)])
    assert cache.read() == {"new": '{"n":2}', "gone": '{"n":1}'}


def test_a_record_with_a_time_of_its_own_stays_longer_than_the_one_before(cache: Cache) -> None:
    store = cache.store(ttl=SECOND)
    assert store.write(0, None, at(1), [entry("a", 0, when=NOW - 5_000)])
    assert cache.store(ttl=None).write(0, at(1), at(2), [entry("a", 1)])
    store.delete_expired()
    assert cache.read() == {"a": '{"n":1}'}


TEXTS = ['{"t":"a\\u0000b"}', '{"t":"\\\\u0000"}', '{"t":"\U0001f600\\"\\\\"}', '{"n":1.5}', "null"]


@pytest.mark.parametrize("text", TEXTS)
def test_every_json_is_kept_but_for_the_character_that_postgresql_has_not(cache: Cache, text: str) -> None:
    assert cache.store().write(0, None, at(1), [entry("a", 0, text)])
    assert cache.read()["a"].replace("\ufffd", "\\u0000") == text


def test_a_thousand_entries_are_one_write(cache: Cache) -> None:
    assert cache.store().write(0, None, at(1000), [entry(f"k{n}", n) for n in range(1000)])
    assert len(cache.read()) == 1000


def test_caches_of_one_server_do_not_see_each_other(cache: Cache) -> None:
    other = Cache(cache.url, cache.kind)
    assert cache.store().write(0, None, at(1), [entry("a", 0)])
    assert other.store().write(0, None, at(2), [entry("a", 1)])
    assert cache.read() == {"a": '{"n":0}'}
    other.close()


def test_a_server_that_is_away_may_be_asked_again(tmp_path: Path) -> None:
    with closing(RedisStore((server := LocalRedis(tmp_path)).url, "away", FOR_EVER)) as store:
        with pytest.raises(CacheUnavailable, match="away"):
            store.positions()
        with server:
            assert store.write(0, None, at(1), [entry("a", 0)])
        with pytest.raises(CacheUnavailable):
            store.write(0, at(1), at(2), [entry("a", 1)])
        with server:
            assert store.positions() == {0: at(1)}


def test_a_full_server_is_away_and_has_written_nothing(tmp_path: Path) -> None:
    large = f'"{"x" * 100_000}"'

    def fill(store: RedisStore) -> None:
        seen = None
        for offset in range(1_000):
            assert store.write(0, seen, at(offset + 1), [entry(f"k{offset}", offset, large)])
            seen = at(offset + 1)

    with (
        LocalRedis(tmp_path, "--maxmemory", "10mb", "--maxmemory-policy", "noeviction") as server,
        closing(RedisStore(server.url, "full", FOR_EVER)) as store,
    ):
        with pytest.raises(CacheUnavailable, match="memory"):
            fill(store)
        with closing(server.client()) as client:
            written = len(list(client.scan_iter("{full}:*")))
        assert 0 < written < 1_000
        assert store.positions() == {0: at(written)}


def test_a_wrong_password_is_refused_with_what_to_check(tmp_path: Path) -> None:
    with (
        LocalRedis(tmp_path, "--requirepass", "right") as server,
        closing(RedisStore(server.url.replace("//", "//:wrong@"), "locked", FOR_EVER)) as store,
        pytest.raises(ConfigError) as refused,
    ):
        store.positions()
    assert "may do" in str(refused.value.hint)


def test_a_database_that_does_not_answer_is_away(database: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://127.0.0.1:{closed.getsockname()[1]}/none"
        with pytest.raises(CacheUnavailable):
            PostgresStore(url, "none", FOR_EVER).positions()


def test_a_user_that_may_not_create_the_schema_is_refused(database: str) -> None:
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        base = connection.info.dbname
        connection.execute(f'REVOKE CREATE ON DATABASE "{base}" FROM PUBLIC')
    url = psycopg.conninfo.make_conninfo(database, user="reader")
    with pytest.raises(ConfigError, match="permission denied"):
        PostgresStore(url, "mine", FOR_EVER).positions()


def test_a_name_that_the_database_would_cut_off_is_refused() -> None:
    with pytest.raises(ConfigError, match="51 characters"):
        PostgresStore("postgresql://h/d", "n" * 51, FOR_EVER)


def test_a_connection_that_the_database_ends_is_opened_again(database: str) -> None:
    import psycopg

    cache = Cache(database, PostgresStore)
    store = cache.store()
    assert store.write(0, None, at(1), [entry("a", 0)])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(CacheUnavailable):
        store.write(0, at(1), at(2), [entry("a", 1)])
    assert wait_until(lambda: store.positions() == {0: at(1)}, 30)
    assert store.write(0, at(1), at(2), [entry("a", 1)])
    cache.close()


def test_an_erased_entity_is_in_no_key_and_no_value_and_others_stay(cache: Cache) -> None:
    subject, store = DataSubject("card", "card_4f1c09e2"), cache.store()
    mine = [entry("card_4f1c09e2", 1), entry("card_4f1c09e2|m_1", 2), entry("m_2", 3, '{"card_id":"card_4f1c09e2"}')]
    others = [entry("card_4f1c09e20", 4), entry("m_3", 5, '{"card_id":"card_4f1c09e20"}'), entry("card_1", 6)]
    assert store.write(0, None, at(7), [*mine, *others])
    assert store.erase(subject, dry_run=True) == 3
    assert len(cache.read()) == 6
    assert store.erase(subject, dry_run=False) == 3
    assert cache.read() == {each.key: each.value for each in others}
    assert store.positions() == {0: at(7)}
    assert store.erase(subject, dry_run=False) == 0
    assert store.write(0, at(7), at(9), [entry("card_4f1c09e2", 8)]), "a later record of it is kept as before"
    assert cache.read()["card_4f1c09e2"] == '{"n":8}'


def test_every_entry_is_looked_at_however_many_there_are(cache: Cache) -> None:
    store, value = cache.store(), '{"card_id":"card_4f1c09e2"}'
    assert store.write(0, None, at(2_500), [entry(f"m_{n}", n, value if n % 100 == 7 else None) for n in range(2_500)])
    assert store.erase(DataSubject("card", "card_4f1c09e2"), dry_run=False) == 25
    assert len(cache.read()) == 2_475
