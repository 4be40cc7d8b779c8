"""What detectors take that share the JVM of one Spark host, at rest.

`make bench-pytest ARGS="-k shared_memory"` prints for each number of detectors in `LOZENGE_SHARED_COUNTS` (rules and
folds in turn, and one aggregate): seconds until each had claimed its partitions, one after the other; PSS of
the JVM and of all Python processes, those of the host among them; RSS of all; PSS for each detector; and the cores that
all of them use at rest. With `LOZENGE_BASE` set the jobs are forks, as those of an agent are.
"""

import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.hosts.host_pool import default_size
from lozenge_deploy.hosts.host_process import HostProcess
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench import test_memory_at_rest as jobs
from tests.bench.backlog import events, produce
from tests.bench.harness.platform import TOPICS
from tests.streams import every_topic
from tests.waiting import until

COUNTS = [int(count) for count in os.environ.get("LOZENGE_SHARED_COUNTS", "1,5,10,20").split(",")]
EVENTS = 20_000
DETECTORS = ("large_amount", "duplicate_charge")
AGGREGATE = "card_velocity"


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(TOPICS))
        print("\ndetectors | start s | JVM pss | Python pss | rss of all | pss of one | cores at rest", flush=True)
        for count in COUNTS:
            folders = [_copy(tmp_path, n, AGGREGATE if n == 2 else DETECTORS[n % 2]) for n in range(count)]
            ensure_topics(kafka, [t for f in folders for t in TOPICS.detector(f.name).contracts()])
            with _host(tmp_path / f"host-{count}") as host, ExitStack() as running:
                monkeypatch.setenv("LOZENGE_JOB_HOST", str(host.folder))
                _measure(kafka, folders, host, running, tmp_path / f"work-{count}")


def _measure(kafka: KafkaSettings, folders: list[Path], host: HostProcess, running: ExitStack, work: Path) -> None:
    work.mkdir()
    started, before = [], {folder: jobs._metadata(kafka, folder.name) for folder in folders}
    pids = []
    for folder in folders:
        began = time.monotonic()
        job = running.enter_context(jobs._job(kafka, folder, work))
        until(lambda: jobs._metadata(kafka, folder.name) != before[folder])  # noqa: B023
        started.append(time.monotonic() - began)
        pids.append(job.pid)
    backlog = list(events(EVENTS))
    for first in range(0, EVENTS, EVENTS // 10):
        produce(kafka, backlog[first : first + EVENTS // 10])
        time.sleep(1.0)
    time.sleep(jobs.REST_SECONDS)
    roots = [host.record.pid, *pids]
    spent, at = _cpu_seconds(roots), time.monotonic()
    time.sleep(jobs.REST_SECONDS)
    cores = (_cpu_seconds(roots) - spent) / (time.monotonic() - at)
    found = _memory(roots)
    jvm, own = (sum(memory.pss for name, memory in found if (name == "java") is java) for java in (True, False))
    rss = sum(memory.rss for _, memory in found)
    print(
        f"{len(folders):9} | {started[0]:.1f}, {statistics.median(started):.1f}, {max(started):.1f} | "
        f"{jvm:5.0f} | {own:5.0f} | {rss:5.0f} | {(jvm + own) / len(folders):5.0f} | {cores:.3f}",
        flush=True,
    )


def _processes(roots: list[int]) -> list[psutil.Process]:
    found = [psutil.Process(pid) for pid in roots]
    return [*found, *(child for root in found for child in root.children(recursive=True))]


def _memory(roots: list[int]) -> list[tuple[str, jobs.Memory]]:
    """What each process takes, with its name. A job on the host is a fork, below the host."""
    found = []
    for process in _processes(roots):
        with suppress(OSError, psutil.Error):  # it has just ended
            found.append((process.name(), jobs._rollup(process.pid)))
    return found


def _cpu_seconds(roots: list[int]) -> float:
    total = 0.0
    for process in _processes(roots):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:2])
    return total


@contextmanager
def _host(folder: Path) -> Iterator[HostProcess]:
    host = HostProcess.start(folder, Path(sys.executable), os.environ, default_size(), "f", now=time.time())
    try:
        until(host.ready)
        yield host
    finally:
        host.kill()


def _copy(tmp_path: Path, number: int, name: str) -> Path:
    """A copy of a detector under a name of its own."""
    copy = tmp_path / f"{name}_{number}"
    if not copy.exists():
        shutil.copytree(jobs.TREE / "detectors" / name, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        (copy / f"{name}.py").rename(copy / f"{copy.name}.py")
        manifest = (copy / "pyproject.toml").read_text("utf-8")
        (copy / "pyproject.toml").write_text(re.sub(rf"\b{name}\b", copy.name, manifest), "utf-8")
    return copy
