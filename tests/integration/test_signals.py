"""A signal that reaches a job's process and its JVM at once is a stop; a JVM that dies alone is named."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.kafka import KafkaSettings
from tests.integration.conftest import Broker
from tests.integration.harness import wait_for

pytestmark = pytest.mark.integration

DETECTOR = Path(__file__).parents[2] / "detectors" / "large_amount"
UPSTREAM, JOB = ["lozenge_upstream"], ["lozenge.job", f"{DETECTOR}{os.sep}"]


@contextmanager
def started(
    module: list[str], says: str, broker: Broker, folder: Path
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A process in a group of its own that has logged `says`, and its log."""
    ensure_topics(
        KafkaSettings(bootstrap=broker.bootstrap), [*topics.platform_topics(), *topics.detector_topics(DETECTOR.name)]
    )
    log = folder / "log"
    variables = {"LOZENGE_KAFKA_BOOTSTRAP": broker.bootstrap}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *module], env=os.environ | variables, cwd=folder, stderr=out, process_group=0
        )
    try:
        wait_for(lambda: says in log.read_text() or process.poll() is not None, says)
        yield process, log
    finally:
        if process.poll() is None:
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
    ("module", "says", "hit", "code", "last"),
    [
        (JOB, "query starts", whole_group, 0, ""),
        (JOB, "query starts", jvm_alone, 1, "running large_amount: Spark's JVM has ended"),
        (UPSTREAM, "upstream runs", whole_group, 0, ""),
        (UPSTREAM, "upstream runs", jvm_alone, 1, "normalising: Spark's JVM has ended"),
    ],
    ids=[
        "a job is stopped with its JVM",
        "a job's JVM dies",
        "upstream is stopped with its JVM",
        "upstream's JVM dies",
    ],
)
def test_the_end_of_the_jvm(
    module: list[str], says: str, hit: Callable[["subprocess.Popen[bytes]"], None], code: int, last: str,
    broker: Broker, tmp_path: Path,
) -> None:  # fmt: skip
    with started(module, says, broker, tmp_path) as (process, log):
        hit(process)
        process.wait(60)
        assert process.returncode == code, log.read_text()
        assert last in log.read_text()
        assert "Traceback" not in log.read_text()
