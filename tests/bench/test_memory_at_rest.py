"""What jobs take in memory at rest: alone, and five next to each other.

`make bench-pytest ARGS="-k memory_at_rest"` prints for each job, from `/proc/PID/smaps_rollup`: RSS, PSS and private
memory of its JVM, RSS and PSS of its Python; and the JVM's processor time and threads. PSS divides a page among the
processes that map it, so the sum over jobs is what the machine spends. Each job first processes `LOZENGE_MEMORY_EVENTS`
events in bursts.

`LOZENGE_MEMORY_TREE` names another checkout whose jobs are measured; its `make setup` has run. `LOZENGE_MEMORY_OF`
names the jobs to start alone, and `five` for all at once. `LOZENGE_MEMORY_JVM` holds further flags of their JVMs.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from kafka import KafkaConsumer, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import bounds
from lozenge.process.usage import counted
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.backlog import events, produce
from tests.bench.harness.platform import TOPICS
from tests.streams import every_topic

TREE = Path(os.environ.get("LOZENGE_MEMORY_TREE", Path(__file__).parents[2]))
EVENTS, BURSTS = int(os.environ.get("LOZENGE_MEMORY_EVENTS", "100000")), 10
REST_SECONDS = float(os.environ.get("LOZENGE_MEMORY_REST", "30"))
"""Longer than a trigger in Real-Time Mode takes to end its short batches, and than a heap takes to be given back."""
JOBS = {
    "rule": ("large_amount", ""),
    "fold": ("duplicate_charge", ""),
    "aggregate": ("card_velocity", ""),
    "rule in Real-Time Mode": ("large_amount", "realtime"),
    "second fold": ("recurring_price_increase", ""),
}
FIVE = "five"
WANTED = os.environ.get("LOZENGE_MEMORY_OF", ",".join(["rule", "fold", "aggregate", FIVE])).split(",")


class Memory(NamedTuple):
    """MB of one process."""

    rss: float
    pss: float
    private: float


def test_memory_at_rest(tmp_path: Path) -> None:
    folders = {kind: _folder(tmp_path, name, mode) for kind, (name, mode) in JOBS.items()}
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        names = [folder.name for folder in folders.values()]
        own = [topic for name in names for topic in TOPICS.detector(name).contracts()]
        ensure_topics(kafka, [*every_topic(TOPICS), *own])
        print(
            f"\n{TREE.name}, MB: JVM rss, pss, private | Python rss, pss | pss of both | JVM cpu s, threads",
            flush=True,
        )
        for wanted in WANTED:
            _measure(wanted, kafka, folders if wanted == FIVE else {wanted: folders[wanted]}, tmp_path)


def _measure(name: str, kafka: KafkaSettings, folders: Mapping[str, Path], work: Path) -> None:
    before = {kind: _metadata(kafka, folder.name) for kind, folder in folders.items()}
    with ExitStack() as running:
        began = time.monotonic()
        jobs = {kind: running.enter_context(_job(kafka, folder, work)) for kind, folder in folders.items()}
        for kind, job in jobs.items():
            while _metadata(kafka, folders[kind].name) == before[kind]:  # it has not claimed its partitions yet
                assert job.poll() is None, f"{kind} has ended with {job.returncode}"
                time.sleep(0.2)
        started = time.monotonic() - began
        end = _end(kafka) + EVENTS
        backlog = list(events(EVENTS))
        for first in range(0, EVENTS, EVENTS // BURSTS):
            produce(kafka, backlog[first : first + EVENTS // BURSTS])
            time.sleep(1.0)
        for kind, job in jobs.items():
            _wait_for_end(kafka, folders[kind].name, job, end)
        time.sleep(REST_SECONDS)
        print(f"{name}: claimed within {started:.1f} s", flush=True)
        for kind, job in jobs.items():
            jvm, python, seconds, threads = _memory(job.pid)
            print(
                f"  {kind:24} {jvm.rss:5.0f} {jvm.pss:5.0f} {jvm.private:5.0f} | {python.rss:5.0f} {python.pss:5.0f} | "
                f"{jvm.pss + python.pss:5.0f} | {seconds:5.1f} {threads:4}",
                flush=True,
            )


@contextmanager
def _job(kafka: KafkaSettings, folder: Path, work: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "LOZENGE_JOB_WORK": str(work / "work"),
        "LOZENGE_JOB_GENERATION": str(int(time.time())),
        "JDK_JAVA_OPTIONS": os.environ.get("LOZENGE_MEMORY_JVM", ""),
    }
    command = [str(TREE / ".venv" / "bin" / "python"), "-m", "lozenge.job", f"{folder}{os.sep}"]
    with (work / f"{folder.name}.log").open("ab") as log:
        job = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=work, process_group=0)
    try:
        yield job
    finally:
        job.terminate()
        job.wait(60)


def _metadata(kafka: KafkaSettings, group: str) -> set[str]:
    return {metadata for _, metadata in _committed(kafka, group)}


def _committed(kafka: KafkaSettings, group: str) -> list[tuple[int, str]]:
    """Offset and metadata of each partition for which the group has committed."""
    consumer = KafkaConsumer(**kafka.kafka_python(), group_id=group, enable_auto_commit=False)
    try:
        partitions = (TopicPartition(TOPICS.events("auth"), number) for number in range(TOPICS.partitions))
        found = (consumer.committed(partition, metadata=True) for partition in partitions)
        return [(each.offset, each.metadata) for each in found if each is not None]
    finally:
        consumer.close()


def _end(kafka: KafkaSettings) -> int:
    return sum(end for _, end in bounds(kafka, TOPICS.events("auth"), TOPICS.partitions).values())


def _wait_for_end(kafka: KafkaSettings, group: str, job: subprocess.Popen[bytes], end: int) -> None:
    """Until the group's offsets add up to `end`; a job in Real-Time Mode commits every minute."""
    while sum(offset for offset, _ in _committed(kafka, group)) < end:
        assert job.poll() is None, f"{group} has ended with {job.returncode}"
        time.sleep(1.0)


def _folder(tmp_path: Path, name: str, mode: str) -> Path:
    """The detector's folder; of another mode, a copy under another name."""
    folder = TREE / "detectors" / name
    if not mode:
        return folder
    copy = tmp_path / f"{name}_{mode}"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (copy / f"{name}.py").rename(copy / f"{copy.name}.py")
    manifest = (copy / "pyproject.toml").read_text().replace(name, copy.name)
    (copy / "pyproject.toml").write_text(re.sub(r"(?m)^kind = .*$", rf'\g<0>\nmode = "{mode}"', manifest))
    return copy


def _memory(pid: int) -> tuple[Memory, Memory, float, int]:
    """MB of the JVM and of the Python processes of one job; the JVM's processor seconds, and its threads."""
    jvm, python, seconds, threads = Memory(0, 0, 0), Memory(0, 0, 0), 0.0, 0
    for process in counted((psutil.Process(pid), *psutil.Process(pid).children(recursive=True))):
        with suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):  # it has just ended
            found, times = _rollup(process.pid), process.cpu_times()
            if process.name() == "java":
                jvm = Memory(*map(sum, zip(jvm, found, strict=True)))
                seconds += times.user + times.system
                threads += process.num_threads()
            else:
                python = Memory(*map(sum, zip(python, found, strict=True)))
    return jvm, python, seconds, threads


def _rollup(pid: int) -> Memory:
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    mb = {line[0].rstrip(":"): int(line[1]) / 1024 for line in lines}
    return Memory(mb["Rss"], mb["Pss"], mb["Private_Clean"] + mb["Private_Dirty"])
