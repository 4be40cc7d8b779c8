"""A cache under kills of its instances and of its server: after catching up each key has its latest record.

`make cache-kills` runs it longer: CACHE_EVENTS, CACHE_KILLS and CACHE_SERVER_KILLS say how many. The server of Redis's
kind also loses its last seconds, as a failover to a replica may.
"""

import json
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from lozenge.cache.cached_topic import cached_topic
from lozenge.cache.comparison import CacheProof
from lozenge.cache.stores import lifetimes_of, reader_of
from lozenge.detector.fold import Entry as FoldEntry
from lozenge.errors import DecodeError
from lozenge.kafka.group_offsets import committed
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.topic_reader import bounds, retained
from lozenge.process.waiting import wait_until
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import read_sink
from lozenge_deploy.demo.sinks.cache_contents import values_of
from lozenge_deploy.local.redis_server import LocalRedis
from lozenge_deploy.observe.cache_report import verified
from tests import postgres
from tests.bench.backlog import write
from tests.brokers import Broker, own_platform
from tests.deploy.command import invoke
from tests.integration.harness import EVENT, NOW, event
from tests.integration.job.killing import process_of
from tests.sinks import deployed, sink_folder
from tests.streams import AUTH, every_topic

EVENTS, KILLS = int(os.environ.get("CACHE_EVENTS", "20000")), int(os.environ.get("CACHE_KILLS", "2"))
SERVER_KILLS = int(os.environ.get("CACHE_SERVER_KILLS", "1"))
CARDS = 499
NAME = "killed"
"""Of the sink."""
SEED, POISON = 7, 997
START_SECONDS, SECONDS = 60.0, 3_600.0


class Server(Protocol):
    """A server of the cache `killed`, which can be killed, with or without what it has got last."""

    url: str

    def kill(self, *, loses: bool) -> None:
        """Kills it and starts it again; with `loses` as it was some time ago."""

    def remember(self) -> None:
        """What a later loss leaves."""

    def read(self) -> dict[str, str]:
        """The JSON of each key."""

    def reached(self) -> int:
        """The sum of the positions."""


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self._valkey, self._copy = LocalRedis(folder / "valkey"), folder / "copy"
        self.url = self._valkey.url
        self._valkey.start()

    def remember(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._valkey.folder, self._copy)

    def kill(self, *, loses: bool) -> None:
        self._valkey.kill()
        if loses and self._copy.exists():
            shutil.rmtree(self._valkey.folder)
            shutil.copytree(self._copy, self._valkey.folder)
        self._valkey.start()

    def read(self) -> dict[str, str]:
        return values_of(self.url, NAME)

    def reached(self) -> int:
        with closing(self._valkey.client()) as client:
            positions = client.hgetall(f"{{{NAME}}}/positions")
            return sum(int(position.split()[2]) for position in positions.values())

    def close(self) -> None:
        self._valkey.kill()


class PostgresServer:
    def __init__(self, running: Any) -> None:
        self._running = running
        self.url = postgres.database(running, "killed").replace("+psycopg", "")

    def remember(self) -> None:
        """Its transactions are on disk."""

    def kill(self, *, loses: bool) -> None:
        postgres.kill(self._running)

    def read(self) -> dict[str, str]:
        with psycopg.connect(self.url) as connection:
            return dict(connection.execute("SELECT key, value::text FROM lozenge_cache.killed").fetchall())

    def reached(self) -> int:
        with psycopg.connect(self.url) as connection:
            if not connection.execute("SELECT to_regclass('lozenge_cache.positions')").fetchall()[0][0]:
                return 0
            asked = 'SELECT coalesce(sum("offset"), 0) FROM lozenge_cache.positions'
            return int(connection.execute(asked).fetchall()[0][0])


@pytest.fixture
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    """A platform of the test's own: each cache has its group."""
    with own_platform(broker) as platform:
        announce(platform, [AUTH.event_schema])
        yield platform


@pytest.fixture(params=["redis", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    if request.param == "redis":
        valkey = RedisServer(tmp_path)
        yield valkey
        valkey.close()
        return
    with postgres.server(tmp_path / "postgres") as running:
        yield PostgresServer(running)


def records() -> Iterator[tuple[bytes, bytes | None]]:
    for number in range(EVENTS):
        card = f"card_{number * 31 % CARDS}"
        yield card.encode(), EVENT.encode(event(number, card=card)) if number % POISON else b"no event"


def truth(kafka: KafkaSettings, topic: str) -> dict[str, str]:
    """The id of the last event of each card, by a reader that knows no cache."""
    found: dict[str, str] = {}
    for message in retained(kafka, topic, kafka.partitions):
        try:
            found[(message.key() or b"").decode()] = EVENT.decode(message.value())["event_id"]
        except DecodeError:
            continue
    return found


def logs(folder: Path) -> str:
    return "\n".join(log.read_text() for log in sorted(folder.glob("log-*")))


def phase(kafka: KafkaSettings, folder: Path) -> str:
    """What `lozenge status` says of the sink."""
    said = invoke("status", f"sink-{NAME}", "-o", "json", cwd=folder, **kafka.variables).stdout
    return str(json.loads(said)[0]["phase"]) if said else ""


def proof_of(kafka: KafkaSettings, folder: Path) -> CacheProof:
    """What `lozenge cache verify` finds."""
    declared = read_sink(folder)
    assert isinstance(declared, CacheSink)
    topic = cached_topic(declared, kafka, {"auth": AUTH})
    with closing(reader_of(declared)) as reader:
        return verified(kafka, NAME, topic, reader, lifetimes_of(declared), lambda done, total: None)


def declared_in(folder: Path, server: Server, reads: str = 'stream = "auth"') -> Path:
    """The folder of the sink, which reads so."""
    lines = ['kind = "cache"', 'title = "Killed"', 'owner = "tests"', f'url = "{server.url}"', "rows = 500", reads]
    return sink_folder(folder, NAME, "\n".join(lines))


def test_after_kills_each_key_has_its_latest_record_and_each_bad_record_one_dead_letter(
    kafka: KafkaSettings, server: Server, tmp_path: Path
) -> None:
    topics, rng = kafka.topics, random.Random(SEED)
    topic = AUTH.events(topics)
    ensure_topics(kafka, topics.platform_topics())
    sink = declared_in(tmp_path, server)
    command = deployed(kafka, sink)
    producer = threading.Thread(target=write, args=(kafka, topic, kafka.partitions, records()))
    kills = [*["sink"] * KILLS, *["server"] * SERVER_KILLS]
    rng.shuffle(kills)
    numbers = count()
    with ExitStack() as stack:

        def started() -> Any:
            log = tmp_path / f"log-{next(numbers)}"
            return stack.enter_context(process_of(kafka, command, tmp_path, 1, log))

        instances = [started(), started()]
        producer.start()
        for kill in kills:
            reached = server.reached()
            moves = wait_until(lambda: server.reached() > reached or not producer.is_alive(), START_SECONDS)  # noqa: B023
            assert moves, logs(tmp_path)
            server.remember()
            time.sleep(rng.uniform(0.1, 1.0))
            if kill == "server":
                server.kill(loses=bool(rng.getrandbits(1)))
            else:
                instances.pop(0).kill()
                instances.append(started())
        server.kill(loses=True)
        producer.join()
        expected = truth(kafka, topic)
        ends = sum(end for _, end in bounds(kafka, topic, kafka.partitions).values())
        assert wait_until(lambda: server.reached() == ends, SECONDS), (server.reached(), ends, logs(tmp_path))
        assert wait_until(lambda: sum(p.offset for p in committed(kafka, "sink-killed")) == ends, START_SECONDS)
        server.kill(loses=True)  # and no record comes any more
        assert wait_until(lambda: server.reached() == ends, SECONDS), (server.reached(), ends, logs(tmp_path))
        for instance in instances:
            instance.terminate()
            assert instance.wait(60) == 0, logs(tmp_path)
    assert {key: json.loads(value)["event_id"] for key, value in server.read().items()} == expected
    proof = proof_of(kafka, sink)
    assert (proof.right, proof.problems) == (len(expected), []), "`lozenge cache verify` agrees"
    dead = [*retained(kafka, topics.dead_letters("sink-killed"), kafka.partitions)]
    places = {(m.partition(), dict(m.headers() or [])["__connect.errors.offset"]) for m in dead}
    assert len(dead) == len(places) == len(range(0, EVENTS, POISON))
    kinds = f"{KILLS} kills, {SERVER_KILLS + 2} of the server"
    print(f"{kinds}, {EVENTS} records: all {len(expected)} keys right", file=sys.stderr)


def test_a_topic_that_was_created_again_is_cached_from_its_beginning(kafka: KafkaSettings, tmp_path: Path) -> None:
    topic, admin = AUTH.events(kafka.topics), AdminClient(kafka.client())

    def created() -> bool:
        ensure_topics(kafka, every_topic(kafka.topics))
        return topic in partitions(kafka)

    def written(*numbers: int) -> None:
        assert wait_until(created, START_SECONDS), "a broker forgets a topic that is deleted a little later"
        events = [(b"card", EVENT.encode(event(number, card="card"))) for number in numbers]
        write(kafka, topic, kafka.partitions, iter(events))

    with closing(RedisServer(tmp_path)) as server:
        command = deployed(kafka, declared_in(tmp_path, server))
        for numbers in ((1, 2, 3), (4,)):
            written(*numbers)
            with process_of(kafka, command, tmp_path, 1, tmp_path / f"log-{numbers[0]}"):
                last = f"event-{numbers[-1]}"
                assert wait_until(lambda: last in server.read().get("card", ""), START_SECONDS), logs(tmp_path)  # noqa: B023
            admin.delete_topics([topic])[topic].result(30)
            assert wait_until(lambda: topic not in partitions(kafka), START_SECONDS)


def test_the_state_of_a_fold_is_a_feature_of_its_key_until_the_fold_forgets_it(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    state = kafka.topics.detector("spending").state
    ensure_topics(kafka, kafka.topics.platform_topics())
    entries = {key: msgspec.json.encode(FoldEntry({"sum": key}, NOW)) for key in ("a", "b")}
    with closing(RedisServer(tmp_path)) as server:
        command = deployed(kafka, declared_in(tmp_path, server, 'state_of = "spending"'))
        with process_of(kafka, command, tmp_path, 1, tmp_path / "log-1"):
            assert wait_until(lambda: "waits for" in logs(tmp_path), START_SECONDS)
            assert "near to it: " in logs(tmp_path)
            assert wait_until(lambda: phase(kafka, tmp_path) == "waiting", START_SECONDS), logs(tmp_path)
            ensure_topics(kafka, kafka.topics.detector("spending").contracts())
            write(kafka, state, kafka.partitions, ((f'["{key}"]'.encode(), value) for key, value in entries.items()))
            assert wait_until(lambda: len(server.read()) == 2, START_SECONDS), logs(tmp_path)
            assert {key: json.loads(value) for key, value in server.read().items()} == {
                "a": {"sum": "a"},
                "b": {"sum": "b"},
            }
            write(kafka, state, kafka.partitions, iter([(b'["a"]', None)]))
            assert wait_until(lambda: server.read().get("a") is None, START_SECONDS), logs(tmp_path)
