"""A detector in a folder, as a process of its own, killed again and again while events come."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.integration.harness import alerts, begin_at_the_end, send, wait_for

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


def run_through_kills(
    kafka: KafkaSettings, folder: Path, bursts: Sequence[list[dict[str, Any]]], alerts_each: int, kind: str = "rule"
) -> None:
    """Starts it from the end of the events topic on, and again for each burst of events, and kills it in its middle.

    That is at the first of its alerts, of which each burst raises so many; at the last burst, when all have come.
    """
    name, log = folder.name, folder.parent / "log"
    ensure_topics(kafka, kafka.topics.detector(name).contracts())
    begin_at_the_end(kafka, name, kind)
    for generation, burst in enumerate(bursts, 1):
        enough = generation * alerts_each if generation == len(bursts) else (generation - 1) * alerts_each + 1
        with _job(kafka, folder, generation, log) as process:
            wait_for(lambda: "query starts" in log.read_text() or _ended(process), "its start")
            send(kafka, burst)
            wait_for(lambda: len(alerts(kafka, name)) >= enough or _ended(process), "alerts")  # noqa: B023
            assert not _ended(process), log.read_text()


@contextmanager
def _job(kafka: KafkaSettings, folder: Path, generation: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Its process, which is killed with all that it has started."""
    variables = kafka.variables | {
        "LOZENGE_JOB_WORK": str(folder.parent),
        "LOZENGE_JOB_GENERATION": str(generation),
    }
    command = [sys.executable, "-m", "lozenge.job", f"{folder}{os.sep}"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | variables, stderr=file, process_group=0)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    return process.poll() is not None
