"""The whole notifier on a real broker: killed at every commit, fenced, cut off, with new topics under it.

All tests share one broker, store and receiver, as in life; each ends by checking everything so far.
"""

import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from lozenge import ids, topics
from lozenge.admin import ensure_topics
from lozenge.avro import Codec
from lozenge.kafka import KafkaSettings
from lozenge.partitions import partition_of
from lozenge_deploy.broker import EmbeddedBroker
from lozenge_deploy.demo.receiver import Receiver

pytestmark = pytest.mark.integration

CHILD = Path(__file__).with_name("downstream_child.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "consume_notifications.py"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DEADLINE_SECONDS = 180.0
STOP_SECONDS = 60.0
POINTS = list(runpy.run_path(str(CHILD))["POINTS"])


@dataclass
class World:
    """One broker, one store, one receiver, and what was sent so far."""

    broker: EmbeddedBroker
    receiver: Receiver
    folder: Path
    alert_ids: set[str] = field(default_factory=set)
    poison: int = 0
    unrouted: int = 0
    running: subprocess.Popen[str] | None = None
    codec: Codec = field(default_factory=lambda: Codec.of("alert"))

    @property
    def kafka(self) -> KafkaSettings:
        return KafkaSettings(bootstrap=self.broker.bootstrap)

    def send(self, detector: str, numbers: range) -> None:
        """Writes alerts; the same numbers again are repeats."""
        producer = Producer(self.kafka.client())
        for number in numbers:
            now, card = datetime.now(UTC), f"card-{number % 17}"
            alert: dict[str, Any] = {
                "alert_id": ids.alert_id(detector, "card", card, str(number)),
                "detector": detector,
                "release": "r1",
                "settings_digest": "d1",
                "entity": {"type": "card", "id": card},
                "severity": "high",
                "score": 0.5,
                "title": "Test",
                "reason": f"number {number}",
                "evidence": {"event_ids": [], "values": {}},
                "event_time": now,
                "detected_at": now,
                "labels": {},
            }
            self.alert_ids.add(alert["alert_id"])
            partition = partition_of(card.encode(), topics.EVENT_PARTITIONS)
            producer.produce(topics.alerts(detector), self.codec.encode(alert), card.encode(), partition)
        assert producer.flush(30) == 0

    def send_poison(self, detector: str, value: bytes) -> None:
        producer = Producer(self.kafka.client())
        producer.produce(topics.alerts(detector), value, b"poison", 0, headers=[("source", b"\xff\0")])
        assert producer.flush(30) == 0
        self.poison += 1

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "LOZENGE_KAFKA_BOOTSTRAP": self.broker.bootstrap,
            "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{self.folder / 'store.db'}",
            "LOZENGE_DOWNSTREAM_ROUTING": str(self.folder / "routing.toml"),
            "HOOK_SECRET": SECRET,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }

    def start(self, point: str = "", **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(CHILD), *([point] if point else [])]
        return subprocess.Popen(command, env=self.environment() | environment, stderr=subprocess.PIPE, text=True)

    @contextmanager
    def notifier(self, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """An ordinary notifier, stopped in order at the end."""
        self.running = process = self.start(**environment)
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=STOP_SECONDS)
            assert process.returncode == 0, errors
        finally:
            self.running = None
            process.kill()
            process.communicate()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Waits, and fails at once if the notifier has ended."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if self.running and self.running.poll() is not None:
                pytest.fail(f"the notifier ended: {self.running.communicate()[1]}")
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.1)

    def read(self, topic: str) -> list[Any]:
        """All of a topic as an independent read_committed client sees it."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.broker.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        places = [TopicPartition(topic, p) for p in range(topics.EVENT_PARTITIONS)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            found += [record for batch in consumer.poll(200).values() for record in batch]
        consumer.close()
        return found

    def settle(self) -> None:
        """Waits until everything sent has come out everywhere, then checks that it came out once."""
        self.wait_for(lambda: self.receiver.count()["distinct"] >= len(self.alert_ids) - self.unrouted, "webhooks")
        self.wait_for(lambda: len(self.read(topics.NOTIFICATIONS)) >= len(self.alert_ids), "notifications")
        self.wait_for(lambda: len(self.read(topics.dead_letters("downstream"))) >= self.poison, "dead letters")
        self.check()

    def check(self) -> None:
        """Exactly once and gapless in the topic, at least once at the receiver."""
        codec = Codec.of("notification")
        seqs, told = defaultdict(list), []
        for record in self.read(topics.NOTIFICATIONS):
            notification = codec.decode(record.value)
            seqs[record.partition].append(notification["seq"])
            told += notification["alert_ids"]
            assert partition_of(record.key, topics.EVENT_PARTITIONS) == record.partition
        assert len(told) == len(set(told))
        assert set(told) == self.alert_ids
        for found in seqs.values():
            assert found == list(range(len(found)))
        assert len(self.read(topics.dead_letters("downstream"))) == self.poison
        count = self.receiver.count()
        assert (count["distinct"], count["invalid"]) == (len(self.alert_ids) - self.unrouted, 0)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Its own broker: the notifier reads every alert topic, also those of other tests."""
    folder = tmp_path_factory.mktemp("downstream")
    with EmbeddedBroker(folder / "broker") as broker, Receiver(SECRET) as receiver:
        (folder / "routing.toml").write_text(
            f'[webhooks.test]\nurl = "{receiver.url}"\nsecret = {{ env = "HOOK_SECRET" }}\nfirst_retry = 0.2\n'
        )
        world = World(broker, receiver, folder)
        ensure_topics(
            world.kafka, [*topics.platform_topics(), *topics.detector_topics("one"), *topics.detector_topics("two")]
        )
        yield world


def group_offsets(world: World) -> dict[TopicPartition, int]:
    admin = KafkaAdminClient(bootstrap_servers=world.broker.bootstrap)
    try:
        return {place: found.offset for place, found in admin.list_group_offsets(["downstream"])["downstream"].items()}
    finally:
        admin.close()


def test_alerts_of_all_detectors_come_out_once(world: World) -> None:
    world.send("one", range(300))
    world.send("two", range(100))
    world.send("one", range(0, 300, 3))
    world.send_poison("two", b"not an alert")
    with world.notifier():
        world.settle()
    (letter,) = world.read(topics.dead_letters("downstream"))
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["source"]) == (b"poison", b"not an alert", b"\xff\0")
    assert headers["__connect.errors.topic"] == topics.alerts("two").encode()


def test_the_group_shows_no_lag(world: World) -> None:
    consumer = KafkaConsumer(bootstrap_servers=world.broker.bootstrap)
    offsets = group_offsets(world)
    assert {place.topic for place in offsets} == {topics.alerts("one"), topics.alerts("two")}
    assert offsets == consumer.end_offsets(list(offsets))
    consumer.close()


def test_a_new_detectors_topic_is_picked_up(world: World) -> None:
    with world.notifier():
        world.send("one", range(300, 310))
        world.settle()
        ensure_topics(world.kafka, topics.detector_topics("newcomer"))
        world.send("newcomer", range(50))
        world.settle()


def test_a_topic_that_is_new_when_it_starts_again_is_picked_up(world: World) -> None:
    with world.notifier():
        world.send("one", range(310, 315))
        world.settle()
    ensure_topics(world.kafka, topics.detector_topics("meanwhile"))
    world.send("meanwhile", range(40))
    with world.notifier():
        world.settle()


def test_without_webhooks_it_publishes_all_the_same(world: World) -> None:
    (world.folder / "empty.toml").touch()
    with world.notifier(LOZENGE_DOWNSTREAM_ROUTING=str(world.folder / "empty.toml")):
        before = len(world.read(topics.NOTIFICATIONS))
        world.send("one", range(400, 410))
        world.wait_for(lambda: len(world.read(topics.NOTIFICATIONS)) == before + 10, "notifications")
    world.unrouted += 10


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(world: World, point: str) -> None:
    start = 1000 * (1 + POINTS.index(point))
    for attempt in range(2):
        world.send("one", range(start + attempt * 100, start + attempt * 100 + 100))
        killed = world.start(point)
        _, errors = killed.communicate(timeout=DEADLINE_SECONDS)
        assert killed.returncode == -signal.SIGKILL, errors
    world.send("two", range(start, start + 20))
    with world.notifier():
        world.settle()


def test_the_notifier_that_started_last_goes_on(world: World) -> None:
    first = world.start()
    try:
        world.send("one", range(20_000, 20_010))
        world.settle()
        with world.notifier():
            world.send("one", range(20_010, 20_030))
            _, errors = first.communicate(timeout=DEADLINE_SECONDS)
            assert first.returncode == 1
            assert "a newer notifier has opened it" in errors
            world.settle()
    finally:
        first.kill()
        first.communicate()


def test_another_store_is_refused(world: World) -> None:
    other = world.start(LOZENGE_DOWNSTREAM_STORE=f"sqlite:///{world.folder / 'other.db'}")
    _, errors = other.communicate(timeout=DEADLINE_SECONDS)
    assert other.returncode == 1
    assert "was not written from the store" in errors
    world.check()


def test_a_broker_outage_is_survived(world: World) -> None:
    with world.notifier() as process:
        world.send("one", range(30_000, 30_010))
        world.settle()
        world.broker.kill()
        world.broker.start()
        world.send("one", range(30_010, 30_050))
        world.settle()
        assert process.poll() is None


def test_it_stops_while_the_broker_is_away(world: World) -> None:
    with world.notifier():
        world.send("one", range(31_000, 31_010))
        world.settle()
        world.broker.kill()
    world.broker.start()


def test_it_stops_in_the_middle_of_a_webhook_that_does_not_answer(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(DEADLINE_SECONDS)
        routing = world.folder / "mute.toml"
        address = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        routing.write_text(
            (world.folder / "routing.toml").read_text().replace(world.receiver.url, address) + "timeout = 120\n"
        )
        world.send("one", range(50_000, 50_003))
        with world.notifier(LOZENGE_DOWNSTREAM_ROUTING=str(routing)):
            connection, _ = mute.accept()
            assert connection.recv(1)
        connection.close()
    with world.notifier():
        world.settle()


def test_a_topic_made_anew_is_read_from_its_beginning(world: World) -> None:
    admin = AdminClient(world.kafka.client())
    alerts = topics.alerts("newcomer")
    for future in admin.delete_topics([alerts]).values():
        future.result()
    world.wait_for(lambda: alerts not in admin.list_topics(timeout=10).topics, "the topic's end")
    ensure_topics(world.kafka, topics.detector_topics("newcomer"))
    world.send("newcomer", range(48, 53))
    with world.notifier():
        world.settle()


def test_the_example_consumer_misses_nothing(world: World) -> None:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE), world.broker.bootstrap],
        env=world.environment(), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True,
    )  # fmt: skip
    lines = ended.stdout.splitlines()
    assert len(lines) == len(world.alert_ids)
    assert not any("GAP" in line for line in lines)


@pytest.mark.parametrize(
    ("setting", "value", "code", "says"),
    [
        ("LOZENGE_KAFKA_BOOTSTRAP", "127.0.0.1:1", 3, "no Kafka broker answers at 127.0.0.1:1"),
        ("LOZENGE_DOWNSTREAM_ROUTING", "nowhere.toml", 2, "reading the routing file nowhere.toml: No such file"),
        ("LOZENGE_DOWNSTREAM_KEEP_DAYS", "never", 2, "LOZENGE_DOWNSTREAM_KEEP_DAYS: "),
        ("LOZENGE_DOWNSTREAM_STORE", "sqlite:////no/such/folder/s.db", 2, "its folder must exist"),
    ],
)
def test_bad_set_up_gets_a_sentence(world: World, setting: str, value: str, code: int, says: str) -> None:
    environment = world.environment() | {setting: value}
    command = [sys.executable, "-m", "lozenge_downstream"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert (ended.returncode, says in ended.stderr, "Traceback" in ended.stderr) == (code, True, False), ended.stderr
