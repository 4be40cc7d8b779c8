"""What the integration tests share: events in, a runner in a thread, a reader of what came out."""

import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.schemas import Schema
from lozenge.detector.definition import Detector
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.errors import LozengeError
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.streams.definition import StreamDefinition
from tests.integration import clients
from tests.integration.job.sparkless import parts_of
from tests.integration.probe import ACTIVITY, Record, probe
from tests.streams import AUTH, event_codec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEADLINE_SECONDS = 180.0
POLL_SECONDS = 0.1
LEAST_SECONDS = 0.01
"""The shortest time between two looks at a condition, however much probes find."""
EVENT, ALERT = event_codec(), Codec.of("alert")
STOPS_IN_A_TRANSACTION = """
import os
import signal
import time
from pathlib import Path

from lozenge.kafka.writers import TransactionalWriter

_send = TransactionalWriter._retrying


def _stopping(self, doing, call):
    file = Path("{file}")
    if doing == "committing" and file.exists():
        self._producer.flush(5)
        file.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)  # other threads are stopped first, and this one could still commit
    return _send(self, doing, call)


TransactionalWriter._retrying = _stopping
"""
"""Ends nothing: its process is stopped once, between the records of a transaction and its commit."""


def event(
    number: int, card: str = "card_1", amount: str = "10.00", at: timedelta = timedelta(), **more: Any
) -> dict[str, Any]:
    """A canonical event; `number` makes its id."""
    return {
        "event_id": f"event-{number}",
        "event_time": NOW + at,
        "card_id": card,
        "account_id": None,
        "merchant_id": "m-1",
        "terminal_id": "t-1",
        "mcc": "5411",
        "country": "DE",
        "amount": Decimal(amount),
        "currency": "EUR",
        "channel": "pos",
        "auth_result": "approved",
        "raw": {"source": "test", "topic": "AUTH-JSON", "partition": 0, "offset": number, "timestamp": NOW},
    } | more


def wider_events() -> Schema:
    """The schema of events with a field more, `wallet`, as a later upstream may write them."""
    grown = AUTH.event_schema.definition
    grown["fields"].append({"name": "wallet", "type": ["null", "string"], "default": None})
    return Schema(902, AUTH.schema_name, 3, json.dumps(grown))


def send(
    kafka: KafkaSettings,
    events: Iterable[dict[str, Any] | bytes],
    codec: Codec | None = None,
    stream: StreamDefinition = AUTH,
) -> None:
    """Writes canonical events (or any bytes, under the key "card_1") to the events topic, or that of a `stream`."""
    codec = codec or EVENT
    producer, topics = clients.clients(kafka).producer, kafka.topics
    for item in events:
        key = item["card_id"].encode() if isinstance(item, dict) else b"card_1"
        value = codec.encode(item) if isinstance(item, dict) else item
        partition = partition_of(key, topics.partitions)
        producer.produce(stream.events(topics), value, key, partition, headers={"x": b"1"})
        producer.poll(0)
    assert producer.flush(30) == 0


def committed(kafka: KafkaSettings, topic: str) -> list[Record]:
    """Every record of `topic` that was committed before this call."""
    return probe(kafka, topic).read_to_end()


def alerts(kafka: KafkaSettings, detector: str) -> list[dict[str, Any]]:
    """The committed alerts of a detector. A test must not change them: the next call returns the same ones."""
    return probe(kafka, kafka.topics.detector(detector).alerts).decoded(ALERT.decode)


def new_detector(
    kafka: KafkaSettings, detector: Detector[Any], folder: Path, stream: StreamDefinition = AUTH, /, **declared: Any
) -> LoadedDetector:
    """A detector under a name of its own, whose group begins at the present end of the events topic."""
    name = f"test_{uuid.uuid4().hex[:8]}"
    fields = {"kind": "rule", "owner": "tests", "title": "A test", "trigger": "100ms"} | declared
    merged = stream.topics(kafka.topics, ()) if stream.members else []
    ensure_topics(kafka, [*kafka.topics.detector(name).contracts(), *merged])
    begin_at_the_end(kafka, name, declared.get("kind", "rule"), stream)
    return LoadedDetector(name, "1.0.0", detector, Manifest.model_validate(fields), folder, stream)


def begin_at_the_end(kafka: KafkaSettings, name: str, kind: str, stream: StreamDefinition = AUTH) -> None:
    """Commits the present end of the events topic for a detector.

    An aggregate would replay what other tests of the file have sent, and take later events for late ones.
    """
    topic = stream.events(kafka.topics)
    ends = clients.ends(kafka, topic)
    if kind == "aggregate":
        clients.trim(kafka, topic, ends)
    move(kafka, name, ends, topic)


def move(kafka: KafkaSettings, group: str, offsets: dict[int, int], topic: str | None = None) -> None:
    """Commits `offsets` for `group`, by default of the events topic, as any tool may while the group has no member."""
    wait_for(
        lambda: clients.commit(kafka, group, topic or kafka.topics.events("auth"), offsets), f"the offsets of {group}"
    )


class Crash(LozengeError):
    """Ends a runner at once: nothing of it runs after this."""


class Running:
    """A runner in a thread. `error` is what ended it, None after a stop."""

    def __init__(self, runner: JobLoop) -> None:
        self.runner = runner
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.runner.run()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Stops it at a batch boundary and waits for its end."""
        self.runner.stop()
        self.join()

    def join(self) -> None:
        """Waits until it has ended by itself."""
        self.thread.join(DEADLINE_SECONDS)
        assert not self.thread.is_alive(), "the runner did not end"


_RUNNING: list[Running] = []


@contextmanager
def running(
    loaded: LoadedDetector,
    kafka: KafkaSettings,
    spark: Any,
    work: Path,
    make: type[JobLoop] = JobLoop,
    **job: Any,
) -> Iterator[Running]:
    """Runs a detector for the length of the block; an error of the runner's fails the test at its end."""
    settings = JobSettings(work=work, **job)
    run = Running(make(parts_of(loaded, settings, kafka, spark, JobMetrics(loaded.name))))
    _RUNNING.append(run)
    try:
        yield run
    finally:
        _RUNNING.remove(run)
        run.stop()
    if run.error is not None:
        raise run.error


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Returns once `condition` holds; fails when it has not within the deadline, or a running job has died."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        for run in _RUNNING:
            if run.error is not None:
                raise run.error
        seen = ACTIVITY.count
        if condition():
            return
        time.sleep(LEAST_SECONDS)
        ACTIVITY.wait_beyond(seen, POLL_SECONDS)
    raise AssertionError(f"waited {DEADLINE_SECONDS:.0f} s for {what}")


@contextmanager
def ended_behind(process: "subprocess.Popen[bytes]", patience: float) -> Iterator[None]:
    """Ends `process` behind the block, and all of its group after `patience` seconds."""
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def group_offsets(kafka: KafkaSettings, group: str, topic: str | None = None) -> dict[int, tuple[int, str]]:
    """(offset, metadata) by partition of `topic` (else of the events topic), as any lag tool sees them."""
    return clients.group_offsets(kafka, group, topic or kafka.topics.events("auth"))
