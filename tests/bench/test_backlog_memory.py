"""What a job takes in memory while it drains a backlog: it should not matter how much of that there is.

`make bench-pytest ARGS="-k memory"`: prints for each kind of detector the peaks of memory, of its JVM and of Python, in
each quarter of the backlog, with the resources that it declares. `LOZENGE_BACKLOG` is how many events it
has, `LOZENGE_BACKLOG_OF` names the detectors.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.usage import counted
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.backlog import events, produce
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import group_offsets
from tests.streams import every_topic

BACKLOG, QUARTERS = int(os.environ.get("LOZENGE_BACKLOG", "2000000")), 4
DETECTORS = Path(__file__).parents[2] / "detectors"
NAMES = os.environ.get("LOZENGE_BACKLOG_OF", "large_amount,card_velocity,duplicate_charge").split(",")
SAMPLE_SECONDS = 0.5


def test_memory_while_a_backlog_is_drained(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, [*every_topic(TOPICS), *(t for n in NAMES for t in TOPICS.detector(n).contracts())])
        produce(kafka, events(BACKLOG))
        for name in NAMES:
            began = time.monotonic()
            peaks = _peaks(kafka, name, tmp_path)
            took = time.monotonic() - began
            print(f"\n{name}, {BACKLOG:,} events in {took:.0f} s: MB of JVM + Python by quarter, to the first one")
            for jvm, python in peaks:
                print(f"  {jvm / 1e6:6.0f} + {python / 1e6:5.0f}  {(jvm + python) / sum(peaks[0]):.2f}", flush=True)


def _peaks(kafka: KafkaSettings, name: str, folder: Path) -> list[tuple[int, int]]:
    """The peak in bytes of the JVM and of Python in each quarter of the backlog that `name` drains."""
    environment = os.environ | {"LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap, "LOZENGE_JOB_WORK": str(folder)}
    command = [sys.executable, "-m", "lozenge.job", f"{DETECTORS / name}{os.sep}"]
    peaks = [(0, 0)] * QUARTERS
    with (folder / f"{name}.log").open("wb") as log:
        job = subprocess.Popen(command, env=environment, stderr=log, process_group=0)
    try:
        quarter, looked = 0, time.monotonic()
        while quarter < QUARTERS:
            (jvm, python), now = peaks[quarter], _memory(job.pid)
            peaks[quarter] = max(jvm, now[0]), max(python, now[1])
            assert job.poll() is None, (folder / f"{name}.log").read_text()
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                quarter = sum(offset for offset, _ in group_offsets(kafka, name).values()) * QUARTERS // BACKLOG
            time.sleep(SAMPLE_SECONDS)
        return peaks
    finally:
        job.terminate()
        job.wait(60)


def _memory(pid: int) -> tuple[int, int]:
    """Bytes of the JVM and of the Python processes of one job."""
    jvm = python = 0
    for process in counted((psutil.Process(pid), *psutil.Process(pid).children(recursive=True))):
        try:
            size = process.memory_full_info().pss  # what processes share is counted once
            if process.name() == "java":
                jvm += size
            else:
                python += size
        except psutil.Error:  # it has just ended
            continue
    return jvm, python
