"""A detector in a folder, as a process of its own, killed while events come."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lozenge.detector.loader import find
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.harness import alerts, begin_at_the_end, running, send, wait_for

PROJECT = """
[project]
name = "{name}"
version = "1.0.0"

[tool.lozenge]
owner = "tests"
title = "A test"
"""


def detector_folder(parent: Path, module: str, declared: Mapping[str, str]) -> Path:
    """The folder of a detector of a name of its own, which declares so."""
    folder = parent / f"test_{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    lines = "".join(f'{name} = "{value}"\n' for name, value in declared.items())
    (folder / "pyproject.toml").write_text(PROJECT.format(name=folder.name) + lines)
    (folder / f"{folder.name}.py").write_text(module)
    return folder


def run_through_a_kill(
    kafka: KafkaSettings,
    spark: SparkSession,
    folder: Path,
    bursts: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    alerts_each: int,
    kind: str = "rule",
    host: Path | None = None,
) -> None:
    """Starts it at the end of the events topic, kills it at the first alert of a burst, and starts it again.

    The first is on the Spark host in `host`, if there is one. The second start is in
    this process. It gets a burst too, and ends when all alerts have come; each raises so many.
    """
    name, log = folder.name, folder.parent / "log"
    ensure_topics(kafka, kafka.topics.detector(name).contracts())
    begin_at_the_end(kafka, name, kind)
    with job_process(kafka, folder, 1, log, host) as process:
        wait_for(lambda: "query starts" in log.read_text() or _ended(process), "its start")
        send(kafka, bursts[0])
        wait_for(lambda: alerts(kafka, name) or _ended(process), "an alert")
        assert not _ended(process), log.read_text()
    with running(find(f"{folder}{os.sep}"), kafka, spark, folder.parent, generation=2):
        send(kafka, bursts[1])
        wait_for(lambda: len(alerts(kafka, name)) >= 2 * alerts_each, "all alerts")


@contextmanager
def job_process(
    kafka: KafkaSettings, folder: Path, generation: int, log: Path, host: Path | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Its process, which is killed with all that it has started."""
    on = {} if host is None else {"LOZENGE_JOB_HOST": str(host)}
    with process_of(kafka, ["lozenge.job", f"{folder}{os.sep}"], folder.parent, generation, log, **on) as process:
        yield process


@contextmanager
def process_of(
    kafka: KafkaSettings, module: Sequence[str], work: Path, generation: int, log: Path, **variables: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of a module with its arguments, with the settings of a job; killed with all that it has started."""
    job = {"LOZENGE_JOB_WORK": str(work), "LOZENGE_JOB_GENERATION": str(generation)}
    environment = os.environ | kafka.variables | job | variables
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", *module], env=environment, stderr=file, process_group=0)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended, and was waited for
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    return process.poll() is not None
