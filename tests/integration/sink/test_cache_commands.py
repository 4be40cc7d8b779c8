"""`lozenge cache get` and `verify`, on a cache that a sink keeps and that somebody has damaged then."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lozenge.cache.entries import CacheEntry, Lifetimes
from lozenge.cache.postgres_store import PostgresStore
from lozenge.cache.redis_store import RedisStore
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.waiting import wait_until
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.local.redis_server import LocalRedis
from tests import postgres
from tests.bench.backlog import write
from tests.brokers import Broker, own_platform
from tests.deploy.command import invoke
from tests.integration.harness import EVENT, event
from tests.integration.job.killing import process_of
from tests.sinks import deployed, sink_folder
from tests.streams import AUTH, FOLDER

NAME, VARIABLE = "looked_up", "TEST_CACHE_URL"
CARDS, EVENTS = 50, 300
SECONDS = 60.0
DECLARED = f"""
kind = "cache"
title = "Looked up"
owner = "tests"
url = "${{{VARIABLE}}}"
stream = "auth"
fields = ["event_id", "amount"]
"""
Called = Callable[..., Any]


@pytest.fixture
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    with own_platform(broker) as platform:
        announce(platform, [AUTH.event_schema])
        yield platform


@pytest.fixture(params=["redis", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "redis":
        with LocalRedis(tmp_path / "valkey") as server:
            yield server.url
        return
    with postgres.server(tmp_path / "postgres") as running:
        yield postgres.database(running, "caches").replace("+psycopg", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of the sink, in a project of its own."""
    shutil.copytree(FOLDER, tmp_path / "upstream" / "streams")
    return sink_folder(tmp_path, NAME, DECLARED)


@pytest.fixture
def called(kafka: KafkaSettings, url: str, folder: Path, tmp_path: Path) -> Called:
    """What becomes of `lozenge cache` in the project."""

    def call(*arguments: str, **variables: str) -> Any:
        given = {VARIABLE: url, STREAMS_VARIABLE: str(tmp_path / "upstream" / "streams")} | kafka.variables | variables
        return invoke("cache", *arguments, cwd=tmp_path, **given)

    return call


def forget(url: str, key: str) -> None:
    """Deletes an entry behind the back of the sink."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            connection.execute(f"DELETE FROM lozenge_cache.{NAME}_entries WHERE key = %s", [key])
        return
    with closing(RedisStore(url, NAME, Lifetimes(None, timedelta(days=1)))) as store:
        assert store._server.client.delete(store._server.key_of(key)) == 1


def add(url: str, key: str, ttl: timedelta | None, at: int) -> None:
    """An entry of the last record that is cached of a partition, which is not of the key."""
    kind = PostgresStore if url.startswith("postgresql") else RedisStore
    with closing(kind(url, NAME, Lifetimes(ttl, timedelta(days=1)))) as store:
        partition, position = max(store.positions().items(), key=lambda each: each[1].offset)
        assert store.write(partition, position, position, [CacheEntry(key, "1", position.offset - 1, at)])


def verified(called: Called) -> dict[str, Any]:
    """What `verify` counts; nothing if it cannot say."""
    said = called("verify", NAME, "-o", "json").stdout
    return dict(json.loads(said)[0]) if said else {}


def test_a_cache_is_looked_up_and_verified_and_each_damage_is_named(
    called: Called, kafka: KafkaSettings, url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = AUTH.events(kafka.topics)
    for verb in (("get", NAME, "card_1"), ("verify", NAME)):
        run = called(*verb)
        assert (run.returncode, "has nothing of this cache" in run.stderr) == (1, True)
        assert f"`lozenge up --sink {NAME}` starts it" in run.stderr

    cards = [f"card_{number % CARDS}" for number in range(EVENTS)]
    records = [(card.encode(), EVENT.encode(event(n, card=card))) for n, card in enumerate(cards)]
    write(kafka, topic, kafka.partitions, iter([*records, (b"card_1", b"no event"), (b"card_2", None)]))
    monkeypatch.setenv(VARIABLE, url)
    with process_of(kafka, deployed(kafka, folder), tmp_path, 1, tmp_path / "log") as sink:
        assert wait_until(lambda: verified(called).get("right") == CARDS, SECONDS), (tmp_path / "log").read_text()
        sink.terminate()
        assert sink.wait(60) == 0
    counts = {name: count for name, count in verified(called).items() if count}
    assert counts == {"cache": NAME, "release": "r1", "right": CARDS}
    run = called("get", NAME, "card_2")
    assert (run.returncode, "has deleted it" in run.stderr) == (1, True)

    [found] = json.loads(called("get", f"sink-{NAME}", "card_1", "-o", "json").stdout)
    last = max(number for number, card in enumerate(cards) if card == "card_1")
    assert (found["value"]["event_id"], found["value"].keys()) == (f"event-{last}", {"event_id", "amount"})
    assert (found["epoch"], found["expires_in_seconds"]) == (1, None)
    assert 0 <= found["age_seconds"] < 3600
    run = called("get", NAME, "card_none")
    assert (run.returncode, "there is no such key" in run.stderr) == (1, True)

    add(url, "late", timedelta(seconds=1), 0)
    run = called("get", NAME, "late")
    assert run.returncode == 1
    assert ("has expired" if url.startswith("postgresql") else "there is no such key") in run.stderr
    assert called("verify", NAME).returncode == 0
    forget(url, "card_3")
    add(url, "ghost", None, int(time.time() * 1000))
    run = called("verify", NAME)
    assert run.returncode == 1
    assert "1 missing: card_3 (topic " in run.stderr
    assert "1 surplus: ghost (store " in run.stderr


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_what_cannot_be_asked_is_said_with_an_exit_code_of_its_own(called: Called) -> None:
    run = called("get", "nothing", "k")
    assert (run.returncode, f"name one of {NAME}" in run.stderr) == (2, True)
    run = called("get", NAME, "k", **{VARIABLE: "redis://127.0.0.1:1/0"})
    assert (run.returncode, "Connection refused" in run.stderr) == (3, True)


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_a_variable_of_the_url_that_is_not_set_is_named(called: Called, tmp_path: Path) -> None:
    (tmp_path / "downstream" / "sinks" / NAME / "sink.toml").write_text(DECLARED.replace(VARIABLE, "NEVER_SET"))
    run = called("verify", NAME)
    assert (run.returncode, "NEVER_SET is not set" in run.stderr) == (2, True)
