"""A notifier among real parts: a broker, one store, one receiver, and what was sent so far."""

import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.demo.webhook_receiver import Receiver
from tests.integration.downstream.notifier_process import NotifierProcess
from tests.integration.probe import Record, TopicProbe
from tests.streams import every_topic

NAMED = {"LOZENGE_DOWNSTREAM_INSTANCE": "one"}
"""Of a notifier that replaces at once the one that had this name before."""
NOTIFICATION = Codec.of("notification").decode
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DEADLINE_SECONDS = 180.0
STOP_SECONDS = 60.0
LATEST = 10_000
ALL_CARDS = 17


@dataclass
class World:
    """A broker without other alerts, one store, one receiver, and what was sent so far."""

    kafka: KafkaSettings
    receiver: Receiver
    folder: Path
    store: str
    alert_ids: set[str] = field(default_factory=set)
    poison: int = 0
    unrouted: int = 0
    running: NotifierProcess | None = None
    codec: Codec = field(default_factory=lambda: Codec.of("alert"))
    probes: dict[str, TopicProbe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._starts = count()
        self.producer = Producer(self.kafka.client(message_max_bytes=2_000_000))

    @property
    def topics(self) -> Topics:
        return self.kafka.topics

    def send(self, detector: str, numbers: range) -> None:
        """Writes alerts; the same numbers again are repeats."""
        for number in numbers:
            now, card = datetime.now(UTC), f"card-{number % ALL_CARDS}"
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
            partition = partition_of(card.encode(), self.topics.partitions)
            topic = self.topics.detector(detector).alerts
            self.producer.produce(topic, self.codec.encode(alert), card.encode(), partition)
        assert self.producer.flush(30) == 0

    def send_poison(self, detector: str, value: bytes) -> None:
        topic = self.topics.detector(detector).alerts
        self.producer.produce(topic, value, b"poison", 0, headers=[("source", b"\xff\0")])
        assert self.producer.flush(30) == 0
        self.poison += 1

    def environment(self) -> dict[str, str]:
        return (
            os.environ
            | self.kafka.variables
            | {
                "LOZENGE_DOWNSTREAM_STORE": self.store,
                "LOZENGE_DOWNSTREAM_ROUTING": str(self.folder / "routing.toml"),
                "HOOK_SECRET": SECRET,
            }
        )

    def start(self, point: str = "", **environment: str) -> NotifierProcess:
        """A notifier, which is killed at `point`."""
        errors = self.folder / f"errors.{next(self._starts)}"
        return NotifierProcess(self.environment() | environment, errors, point)

    def dies_at(self, point: str) -> None:
        """Runs a notifier that comes to `point`, and is killed there."""
        killed = self.start(point, **NAMED)
        try:
            assert killed.ends(DEADLINE_SECONDS) == -signal.SIGKILL, killed.errors
        finally:
            killed.kill()  # one that did not die at its point would share the work with the next

    @contextmanager
    def notifier(self, **environment: str) -> Iterator[NotifierProcess]:
        """An ordinary notifier, stopped in order at the end."""
        self.running = process = self.start(**NAMED | environment)
        try:
            yield process
            process.stop()
            assert process.ends(STOP_SECONDS) == 0, process.errors
        finally:
            self.running = None
            process.kill()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Waits, and fails at once if the notifier has ended."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if self.running and self.running.exit_code is not None:
                pytest.fail(f"the notifier ended: {self.running.errors}")
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.1)

    def read(self, topic: str) -> list[Record]:
        """All committed records of a topic that a notifier writes."""
        return self.probes[topic].read_to_end()

    def notifications(self) -> list[dict[str, Any]]:
        """What is in Kafka; those of one case are in their order."""
        return self.probes[self.topics.notifications].decoded(NOTIFICATION)

    def settle(self) -> None:
        """Waits until everything sent has come out everywhere, then checks that it came out once."""
        self.wait_for(lambda: self.receiver.count()["distinct"] >= len(self.alert_ids) - self.unrouted, "webhooks")
        self.wait_for(lambda: len(self.read(self.topics.notifications)) >= len(self.alert_ids), "notifications")
        self.wait_for(lambda: len(self.read(self.topics.dead_letters("downstream"))) >= self.poison, "dead letters")
        self.check()

    def check(self) -> None:
        """Exactly once and gapless in the topic, at least once at the receiver."""
        self.check_seqs()
        counts = Counter(alert_id for notification in self.notifications() for alert_id in notification["alert_ids"])
        assert counts == Counter(self.alert_ids)
        assert len(self.read(self.topics.dead_letters("downstream"))) == self.poison
        count = self.receiver.count()
        assert (count["distinct"], count["invalid"]) == (len(self.alert_ids) - self.unrouted, 0)

    def check_seqs(self) -> None:
        """Checks that notifications have no gap, and are in the partitions of their keys."""
        seqs = defaultdict(list)
        for record, notification in zip(self.read(self.topics.notifications), self.notifications(), strict=True):
            assert partition_of(record.key, self.topics.partitions) == record.partition
            seqs[record.partition].append(notification["seq"])
        for numbers in seqs.values():
            assert numbers == list(range(len(numbers)))


@contextmanager
def world_of(kafka: KafkaSettings, folder: Path, store: str) -> Iterator[World]:
    """The platform must have no alerts yet: a notifier reads every alert topic and continues the notifications."""
    with Receiver(SECRET, latest=LATEST) as receiver, ExitStack() as stack:
        (folder / "routing.toml").write_text(
            '[rate_limit]\nalerts = 1000000\n[route]\nchannels = ["test"]\n'
            '[channels.test]\ntype = "webhook"\nnetworks = ["127.0.0.0/8"]\n'
            f'url = "{receiver.url}"\nsecret = {{ env = "HOOK_SECRET" }}\nfirst_retry = 0.2\n'
        )
        world, topics = World(kafka, receiver, folder, store), kafka.topics
        detectors = [topic for name in ("one", "two") for topic in topics.detector(name).contracts()]
        ensure_topics(kafka, [*every_topic(topics), *detectors])
        for topic in (topics.notifications, topics.feedback, topics.dead_letters("downstream")):
            world.probes[topic] = probe = TopicProbe(world.kafka, topic)
            stack.callback(probe.join)
            stack.callback(probe.close)  # before it is joined: callbacks run last first
        yield world
