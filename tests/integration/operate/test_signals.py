"""How processes end: at a batch boundary when asked to, without one when that takes too long; a dead JVM is named."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.shutdown import OVERDUE
from tests.integration.harness import alerts, event, group_offsets, send, wait_for

pytestmark = pytest.mark.integration

DETECTOR = Path(__file__).parents[3] / "detectors" / "large_amount"
UPSTREAM, JOB = ["-m", "lozenge_upstream"], ["-m", "lozenge.job", f"{DETECTOR}{os.sep}"]
IN_A_SECOND = """
import os, sys
from lozenge.process import shutdown
shutdown.STOP_SECONDS = 1.0
from lozenge.job.__main__ import main
os._exit(main())
"""
SLEEPS = """
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert


def detect(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    @F.udf("string")
    def slow(card: str) -> str:
        Path("{asleep}").touch()
        time.sleep(600)
        return card

    return events.select(*alert(reason=slow("card_id")))


detector = Detector(detect, settings=Settings)
"""


@contextmanager
def started(
    command: list[str], says: str, kafka: KafkaSettings, folder: Path, name: str = DETECTOR.name
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A process in a group of its own that has logged `says`, and its log."""
    ensure_topics(kafka, kafka.topics.detector_topics(name))
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command], env=os.environ | kafka.variables, cwd=folder, stderr=out, process_group=0
        )
    try:
        wait_for(lambda: says in log.read_text() or process.poll() is not None, says)
        yield process, log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def whole_group(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGTERM)


def jvm_alone(process: "subprocess.Popen[bytes]") -> None:
    children = [
        pid for task in Path(f"/proc/{process.pid}/task").glob("*/children") for pid in task.read_text().split()
    ]
    [jvm] = [int(pid) for pid in children if b"SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(jvm, signal.SIGKILL)


@pytest.mark.parametrize(
    ("command", "says", "hit", "code", "last"),
    [
        (JOB, "query starts", whole_group, 0, ""),
        (JOB, "query starts", jvm_alone, 1, "running large_amount: Spark's JVM has ended"),
        (UPSTREAM, "query started", whole_group, 0, ""),
        (UPSTREAM, "query started", jvm_alone, 1, "normalising: Spark's JVM has ended"),
    ],
    ids=[
        "a job is stopped with its JVM",
        "a job's JVM dies",
        "upstream is stopped with its JVM",
        "upstream's JVM dies",
    ],
)
def test_a_job_whose_jvm_ends_names_it(
    command: list[str], says: str, hit: Callable[["subprocess.Popen[bytes]"], None], code: int, last: str,
    kafka: KafkaSettings, tmp_path: Path,
) -> None:  # fmt: skip
    with started(command, says, kafka, tmp_path) as (process, log):
        hit(process)
        process.wait(60)
        assert process.returncode == code, log.read_text()
        assert last in log.read_text()
        assert "Traceback" not in log.read_text()


def test_a_job_in_the_middle_of_a_long_batch_ends_all_the_same_and_commits_nothing(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    folder, asleep = tmp_path / "sleeper", tmp_path / "asleep"
    folder.mkdir()
    (folder / "sleeper.py").write_text(SLEEPS.format(asleep=asleep))
    project = (DETECTOR / "pyproject.toml").read_text().split("[tool.lozenge.tables")[0]
    (folder / "pyproject.toml").write_text(project.replace(DETECTOR.name, "sleeper"))
    job = ["-c", IN_A_SECOND, f"{folder}{os.sep}"]
    with started(job, "query starts", kafka, tmp_path, "sleeper") as (process, log):
        before = group_offsets(kafka, "sleeper")
        send(kafka, [event(1)])
        wait_for(lambda: asleep.exists() or process.poll() is not None, "the batch")
        process.terminate()
        process.wait(60)
        assert process.returncode == OVERDUE, log.read_text()
        assert "running sleeper: still running 1 s after the signal to stop" in log.read_text()
    after = group_offsets(kafka, "sleeper")
    assert {p: offset for p, (offset, _) in after.items()} == {p: offset for p, (offset, _) in before.items()}
    assert alerts(kafka, "sleeper") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
@pytest.mark.parametrize(
    ("command", "says", "makes"),
    [
        (["-m", "lozenge_deploy.agent"], "elected leader", "log"),
        (["-m", "lozenge_downstream"], "", "lozenge-downstream.db"),
    ],
    ids=["agent", "notifier"],
)
def test_the_agent_and_the_notifier_end_at_a_batch_boundary(
    command: list[str], says: str, makes: str, number: signal.Signals, kafka: KafkaSettings, tmp_path: Path
) -> None:
    with started(command, says, kafka, tmp_path) as (process, log):
        wait_for((tmp_path / makes).exists, makes)
        process.send_signal(number)
        process.wait(60)
        assert process.returncode == 0, log.read_text()
        assert "Traceback" not in log.read_text()


def test_the_exporter_ends_at_once(kafka: KafkaSettings, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with started(["-m", "lozenge_deploy.observe.exporter", str(port)], "", kafka, tmp_path) as (process, log):
        wait_for(lambda: serves(port), "its first answer")
        process.terminate()
        process.wait(60)
        assert process.returncode == 0, log.read_text()


def serves(port: int) -> bool:
    with suppress(OSError):
        return bool(urlopen(f"http://127.0.0.1:{port}/metrics").status == 200)
    return False
