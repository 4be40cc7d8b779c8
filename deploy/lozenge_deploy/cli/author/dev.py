"""`lozenge dev`: one detector on live traffic, alongside the live release, restarted whenever its folder changes."""

import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from watchfiles import DefaultFilter, watch

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import reference_list
from lozenge.detector.tables.declared_table import lists_of
from lozenge.errors import LozengeError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import offsets_at
from lozenge.process.retries import retry
from lozenge.toolchain import cache_path
from lozenge_deploy.cli.printing.terminal import echo, print_json, visible
from lozenge_deploy.releases.detector_catalog import detector_in
from lozenge_deploy.releases.environments import environment_of, in_environment
from lozenge_deploy.releases.lint.folder import require_runnable
from lozenge_deploy.supervision.child import Child
from lozenge_deploy.supervision.temp_dirs import temporary_folder

STOP_SECONDS, COMMIT_SECONDS = 30.0, 20.0
_FILES = DefaultFilter()
"""Any file of the folder, of whatever kind, except those of tools such as `.git` and `__pycache__`."""


def develop(folder: Path, kafka: KafkaSettings, last: timedelta, *, as_json: bool = False) -> None:
    """Prints alerts from `last` ago, a line each, until Ctrl-C; then removes its topics and its group.

    The job reads the source folder. Only its dependencies come from an environment, which is built again when
    `pyproject.toml` changes. A job that fails prints its error; the next change starts it again.
    """
    detector = detector_in(folder)
    name = detector.name
    release = f"dev-{uuid.uuid4().hex[:6]}"
    python = environment_of(folder)
    settle_ids(kafka, ["alert"])
    ensure_topics(kafka, map(partial(reference_list, kafka.topics), lists_of(detector.declaration.tables)))
    with (
        temporary_folder() as temporary,
        _own_topics(kafka, name, release, detector.input(kafka.topics), last),
        _printing(kafka, name, release, as_json),
    ):
        job: Child | None = _started(python, folder, temporary, release, generation := 1)
        echo(f"{name} runs as {release}; edit its folder, Ctrl-C stops it", err=True)
        try:
            for changes in watch(folder, watch_filter=_FILES, rust_timeout=500):
                echo(f"{name} has changed and is restarted", err=True)
                _stop(job)
                of_project = any(Path(file).name == "pyproject.toml" for _, file in changes)
                job, changed = None, _checked(folder, python, rebuild=of_project)
                if changed is not None:
                    python = changed
                    job = _started(python, folder, temporary, release, generation := generation + 1)
        except KeyboardInterrupt:
            pass  # the intended way to stop it
        finally:
            _stop(job)


def _checked(folder: Path, python: Path, *, rebuild: bool) -> Path | None:
    """The Python that runs the folder as it is now; None, with the reason on stderr, if none can."""
    try:
        require_runnable(folder)
        return environment_of(folder) if rebuild else python
    except LozengeError as error:
        echo(f"{error}\nthe next change starts it again", err=True)
        return None


@contextmanager
def _own_topics(kafka: KafkaSettings, name: str, release: str, source: str, last: timedelta) -> Iterator[None]:
    """Creates topics and a group that starts `last` ago, and removes them at the end."""
    created = kafka.topics.shadow(name, release).contracts()
    group = f"{name}@{release}"
    group_id = kafka.topics.prefixed(group)
    starts = offsets_at(kafka, source, kafka.partitions, datetime.now(UTC) - last)
    ensure_topics(kafka, created)
    try:
        consumer = Consumer(kafka.client(group_id=group, enable_auto_commit=False))
        positions = [TopicPartition(source, partition, offset) for partition, offset in starts.items()]
        retry(  # its coordinator may not be known yet
            lambda: consumer.commit(offsets=positions, asynchronous=False),
            lambda error: isinstance(error, KafkaException),
            seconds=COMMIT_SECONDS,
            pause=0.2,
        )
        consumer.close()
        yield
    finally:
        admin = AdminClient(kafka.client())
        for future in admin.delete_topics([topic.name for topic in created]).values():
            with suppress(Exception):  # the broker may be gone; the topics expire by retention
                future.result(10)
        with suppress(Exception):
            admin.delete_consumer_groups([group_id])[group_id].result(10)


@contextmanager
def _printing(kafka: KafkaSettings, name: str, release: str, as_json: bool) -> Iterator[None]:
    """Prints the release's alerts from a thread within the block."""
    ended = threading.Event()

    def print_alerts() -> None:
        codec, topic = Codec.of("alert"), kafka.topics.shadow(name, release).alerts
        consumer = Consumer(
            kafka.client(group_id="lozenge-dev", enable_auto_commit=False, isolation_level="read_committed")
        )
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(kafka.partitions)])
        while not ended.is_set():
            for message in consumer.consume(100, 0.2):
                if (error := message.error()) is not None:
                    echo(f"reading {topic}: {error.str()}", err=True)
                    continue
                alert = codec.decode(message.value())
                print_json(alert, indent=None) if as_json else echo(_line(alert))
        consumer.close()

    thread = threading.Thread(target=print_alerts, name="alerts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)


def _line(alert: Mapping[str, Any]) -> str:
    when = f"{alert['event_time']:%Y-%m-%d %H:%M:%S}"
    return visible(f"{when}  {alert['entity']['id']}  {alert['severity']}  {alert['reason']}")


def _started(python: Path, folder: Path, temporary: dict[str, str], release: str, generation: int) -> Child:
    """The running job; it ends when this process ends, even by SIGKILL."""
    settings = {
        "LOZENGE_JOB_RELEASE": release,
        "LOZENGE_JOB_GENERATION": str(generation),
        "LOZENGE_JOB_LIVE": "false",
        "LOZENGE_JOB_WORK": str(cache_path("dev")),
    }
    command = [str(python), "-m", "lozenge.job", f"{folder}{os.sep}"]
    return Child(
        command, environment=in_environment(os.environ | settings | temporary, python), folder=python.parents[1]
    )


def _stop(job: Child | None) -> None:
    """Stops it at a batch boundary, or by SIGKILL after a timeout."""
    if job is not None:
        job.terminate()
        job.end(STOP_SECONDS)
