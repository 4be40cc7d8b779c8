"""The server of a demo's cache: its own, or the one that is named if it has no such cache."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from lozenge.cache.entries import CacheEntry, CachePosition, CacheUnavailable, Lifetimes
from lozenge.cache.redis_store import RedisStore
from lozenge.errors import UsageError
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge_deploy.demo.sinks.cache_contents import values_of
from lozenge_deploy.demo.sinks.cache_server import URL_VARIABLE, cache_server
from lozenge_deploy.local.redis_server import LocalRedis

SINK = CacheSink(name="last", kind="cache", title="Last", owner="tests", url="${" + URL_VARIABLE + "}", stream="auth")


def write_an_entry(url: str) -> None:
    with closing(RedisStore(url, SINK.name, Lifetimes(None, timedelta(days=1)))) as store:
        assert store.write(0, None, CachePosition("topic", 1, 1), [CacheEntry("a", "{}", 0, 0)])


def test_without_a_name_a_server_is_started_for_the_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with cache_server(SINK, tmp_path / "cache") as url:
        write_an_entry(url)
        assert values_of(url, SINK.name) == {"a": "{}"}
    with pytest.raises(CacheUnavailable):
        values_of(url, SINK.name)


def test_a_named_server_is_taken_unless_it_has_this_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as server:
        monkeypatch.setenv(URL_VARIABLE, server.url)
        with cache_server(SINK, tmp_path / "unused") as url:
            assert url == server.url
        write_an_entry(server.url)
        with (
            pytest.raises(UsageError, match="has a cache of this name already"),
            cache_server(SINK, tmp_path / "unused"),
        ):
            pass
        assert values_of(server.url, SINK.name) == {"a": "{}"}
    assert not (tmp_path / "unused").exists()
