"""Members of a group share the partitions of a topic, and none has two owners that work on it."""

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lozenge.contracts.record import Partition
from lozenge.contracts.topics import Topic
from lozenge.kafka.group_membership import Membership
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.harness import wait_for

ALL = frozenset(range(4))
SESSION_SECONDS = 2.0
"""Of a member that is killed: the others wait so long."""


@pytest.fixture
def topic(kafka: KafkaSettings) -> str:
    name = f"shared-{uuid.uuid4().hex[:8]}"
    ensure_topics(kafka, [Topic(name, 4)])
    return name


class Worker:
    """Works on its partitions as a job does: stops when they change, settles, and continues with the new ones."""

    def __init__(self, kafka: KafkaSettings, topic: str, busy: dict[Partition, "Worker"]) -> None:
        self.member = Membership(kafka, topic, [topic], SESSION_SECONDS)
        self.works: frozenset[Partition] = frozenset()
        self.collided = False
        self._busy, self._ends = busy, threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> "Worker":
        self.member.join()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._thread.join()
        self.member.leave()

    def _work(self) -> None:
        while not self._ends.is_set():
            self.works = self.member.settle()
            self.collided = self.collided or any(slot in self._busy for slot in self.works)
            self._busy.update(dict.fromkeys(self.works, self))
            while self.member.partitions == self.works and not self._ends.is_set():
                time.sleep(0.02)
            for slot in self.works:
                self._busy.pop(slot, None)
            self.works = frozenset()

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(partition for _, partition in self.works)


def test_partitions_are_reassigned_only_once_their_owner_has_released_them(kafka: KafkaSettings, topic: str) -> None:
    busy: dict[Partition, Worker] = {}
    with Worker(kafka, topic, busy) as first:
        wait_for(lambda: first.partitions == ALL, "the only member works on all")
        with Worker(kafka, topic, busy) as second:
            wait_for(lambda: len(first.partitions) == len(second.partitions) == 2, "each works on half")
            assert first.partitions | second.partitions == ALL
        wait_for(lambda: first.partitions == ALL, "those of one that left come back")
        assert not first.collided
    assert not second.collided


def test_the_partitions_of_a_killed_member_are_reassigned(kafka: KafkaSettings, topic: str) -> None:
    with Worker(kafka, topic, {}) as survivor, _member_elsewhere(kafka, topic) as other:
        wait_for(lambda: len(survivor.partitions) == 2, "each has half")
        other.kill()
        wait_for(lambda: survivor.partitions == ALL, "the survivor works on all")


@contextmanager
def _member_elsewhere(kafka: KafkaSettings, topic: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own that is a member and gives up whatever it is to give up."""
    session = SESSION_SECONDS
    code = f"""
import time
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.group_membership import Membership
kafka = KafkaSettings(bootstrap={kafka.bootstrap!r}, topic_prefix={kafka.topic_prefix!r})
member = Membership(kafka, {topic!r}, [{topic!r}], {session})
member.join()
while True:
    member.settle()
    time.sleep(0.05)
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
