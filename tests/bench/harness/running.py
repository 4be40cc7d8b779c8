"""A system that runs: started on an empty input, warmed up, and ended with the block."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.process.usage import Meter, counted
from tests.bench.harness.consumer import Recorder
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.system import Start, System
from tests.integration.harness import ended_behind

_LOOK_SECONDS = 0.05
_STAMPED = {"message.timestamp.type": "LogAppendTime"}  # by the broker, whatever a system thinks of time
_TO_THE_END = -1
_END_SECONDS = 60


class Dead(Exception):
    """The system has ended by itself; with the last lines it said."""


class Running:
    """`meter` reads what it costs, with the `hosts` that work for it; None where there is no process."""

    def __init__(
        self, process: "subprocess.Popen[bytes] | None", log: Path, hosts: Sequence[psutil.Process] = ()
    ) -> None:
        self._process, self._log, self._hosts = process, log, hosts
        self.meter = Meter(psutil.Process(process.pid), *hosts) if process else None

    def await_outputs(self, gauge: Recorder, wanted: int, patience: float) -> bool:
        """Whether `wanted` records came out, the next one never later than `patience` seconds. Raises Dead."""
        seen, deadline = gauge.count, time.monotonic() + patience
        while (count := gauge.count) < wanted and time.monotonic() < deadline:
            self.check()
            if count != seen:
                seen, deadline = count, time.monotonic() + patience
            time.sleep(_LOOK_SECONDS)
        return count >= wanted

    def kill(self) -> None:
        """Ends all of its processes but its hosts, as a power cut would."""
        assert self._process
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def request_stop(self) -> None:
        """As its users do."""
        assert self._process
        self._process.terminate()

    def end(self) -> None:
        """Requests its stop, and waits until it has ended."""
        assert self._process
        self.request_stop()
        self._process.wait(_END_SECONDS)

    def memory_mb(self) -> float:
        """Of all of its processes; what several of them share is counted once."""
        assert self._process
        leaders = (psutil.Process(self._process.pid), *self._hosts)
        tree = (each for leader in leaders for each in (leader, *leader.children(recursive=True)))
        return sum(each.memory_full_info().pss for each in counted(tree)) / 1e6

    def check(self) -> None:
        """Raises Dead if it has ended."""
        if self._process and self._process.poll() is not None:
            raise Dead(f"ended with {self._process.returncode}: {self.said()}")

    def said(self) -> str:
        """The last lines of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-8:]) if self._log.exists() else ""


@contextmanager
def started(system: System, start: Start) -> Iterator[Running]:
    """The system with topics of its own, which go with it. Raises Unavailable."""
    with placed(start):
        command = system.command(start) if system.command else None
        waiting = nullcontext(Running(None, start.folder / "log"))
        with process(command, start, system.hosts()) if command else waiting as running:
            yield running


@contextmanager
def placed(start: Start) -> Iterator[None]:
    """The folder and the topics that a start needs; the topics go with the block."""
    start.folder.mkdir(parents=True)
    ensure_topics(start.kafka, [Topic(start.output, TOPICS.partitions, _STAMPED)])
    ensure_topics(start.kafka, TOPICS.detector(start.name).contracts())
    try:
        yield
    finally:
        _forget(start)


@contextmanager
def process(command: Sequence[str], start: Start, hosts: Sequence[psutil.Process]) -> Iterator[Running]:
    """A process of the system, in the folder of its start; `hosts` work for it."""
    log = start.folder / "log"
    environment = os.environ | {
        "LOZENGE_KAFKA_BOOTSTRAP": start.kafka.bootstrap,
        "LOZENGE_JOB_WORK": str(start.folder / "work"),
    }
    with log.open("ab") as out:
        started = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=start.folder, process_group=0)
    with ended_behind(started, 30):
        yield Running(started, log, hosts)


def empty(kafka: KafkaSettings, topic: str = TOPICS.events("auth")) -> None:
    """Deletes all of its records, so that a consumer that begins at the earliest one begins at the next."""
    admin = AdminClient(kafka.client())
    partitions = [TopicPartition(topic, p, _TO_THE_END) for p in range(TOPICS.partitions)]
    for future in admin.delete_records(partitions).values():
        future.result(30)


@contextmanager
def stamped(kafka: KafkaSettings, topic: str) -> Iterator[None]:
    """The broker stamps what is written to a topic that is there anyway, until the block ends."""
    _alter(kafka, topic, AlterConfigOpType.SET)
    try:
        yield
    finally:
        _alter(kafka, topic, AlterConfigOpType.DELETE)


def _alter(kafka: KafkaSettings, topic: str, operation: AlterConfigOpType) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=operation) for name, value in _STAMPED.items()]
    admin = AdminClient(kafka.client())
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def _forget(start: Start) -> None:
    """Deletes its topics, also those that a system made for itself and named after it."""
    mine = [name for name in partitions(start.kafka) if start.name in name]
    admin = AdminClient(start.kafka.client())  # without it nobody would await the answers
    for future in admin.delete_topics(mine).values():
        with suppress(Exception):  # what is left is only in the way of nobody
            future.result(30)
