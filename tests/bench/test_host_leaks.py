"""What a Spark host keeps of detectors that are gone.

`make bench-pytest ARGS="-k host_leaks"` lets `LOZENGE_LEAKS_PROCESSES` jobs (1,000) start on one host, three at a time,
process some events, commit and end: each second one in order, each other by SIGKILL. After every fifth part of them,
with only the process that looks as a client, it lets the JVM rest, and prints what that holds after a collection. It
fails if the last part has left more heap, threads, listeners, files or sockets than the second one, beyond what a
single client takes.

The rest is longer than a minute, because a thread of Spark's pools ends after a minute without work. Until then it
holds the session of the client that made it. The pools have at most some 400 threads. What a Kafka source has fetched
ahead is kept for five minutes.
"""

import itertools
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from lozenge.host.client import SharedJvm
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.internals import driver_jvm, gateways
from lozenge.spark.session_provider import SessionRequest
from lozenge_deploy.hosts.host_process import HostProcess
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench import test_memory_at_rest as jobs
from tests.bench import test_shared_memory as shared
from tests.bench.backlog import events, produce
from tests.bench.harness.platform import TOPICS
from tests.streams import every_topic
from tests.waiting import until

PROCESSES = int(os.environ.get("LOZENGE_LEAKS_PROCESSES", "1000"))
WORKERS, SAMPLES, EVENTS = 3, 5, 100
REST_SECONDS = 75.0
DETECTORS = ("large_amount", "duplicate_charge", "card_velocity")


@dataclass(frozen=True, slots=True)
class Held:
    """MB of heap that is alive and of metaspace; MB of the host's Python; numbers of the rest, of the JVM."""

    heap: float
    metaspace: float
    python: float
    classes: int
    threads: int
    listeners: int
    files: int
    sockets: int
    temporary: int


TOLERANCE = Held(
    heap=32, metaspace=12, python=8, classes=1500, threads=12, listeners=1, files=12, sockets=6, temporary=2
)
"""A client that is still ending, code that Java compiles late, and what a batch of the others holds at the moment."""


def test_a_thousand_jobs_leave_nothing_in_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker, shared._host(tmp_path / "host") as host:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(TOPICS))
        folders = [shared._copy(tmp_path, number, name) for number, name in enumerate(DETECTORS)]
        ensure_topics(kafka, [t for f in folders for t in TOPICS.detector(f.name).contracts()])
        spark = SharedJvm(host.folder).start(SessionRequest("looking", 1, 512))
        monkeypatch.setenv("LOZENGE_JOB_HOST", str(host.folder))
        print(f"\njobs | seconds | {' | '.join(field.name for field in fields(Held))}", flush=True)
        samples = [
            _after(kafka, folders, host, spark, tmp_path / f"work-{number}", number) for number in range(SAMPLES)
        ]
        for field in fields(Held):
            grown = getattr(samples[-1], field.name) - getattr(samples[1], field.name)
            assert grown <= getattr(TOLERANCE, field.name), f"{field.name} grew by {grown:g}"


def _after(
    kafka: KafkaSettings, folders: Sequence[Path], host: HostProcess, spark: SparkSession, work: Path, number: int
) -> Held:
    """What is held once another part of the jobs has come and gone."""
    work.mkdir()
    began, each = time.monotonic(), PROCESSES // SAMPLES
    turn, lock = itertools.count(), threading.Lock()

    def keep_starting(folder: Path) -> None:
        while True:
            with lock:
                mine = next(turn)
            if mine >= each:
                return
            _live_and_die(kafka, folder, work, killed=mine % 2 == 1)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(keep_starting, folders))
    until(lambda: gateways.gateways(spark) == 1)
    time.sleep(REST_SECONDS)
    held = _held(host, spark)
    values = " | ".join(f"{getattr(held, field.name):.0f}" for field in fields(Held))
    print(f"{(number + 1) * each:4} | {time.monotonic() - began:.0f} | {values}", flush=True)
    return held


def _live_and_die(kafka: KafkaSettings, folder: Path, work: Path, *, killed: bool) -> None:
    produce(kafka, list(events(EVENTS)))
    end = jobs._end(kafka)
    with jobs._job(kafka, folder, work) as job:
        while sum(offset for offset, _ in jobs._committed(kafka, folder.name)) < end:
            assert job.poll() is None, (work / f"{folder.name}.log").read_text()[-2000:]
            time.sleep(0.1)
        if killed:
            os.killpg(job.pid, signal.SIGKILL)


def _held(host: HostProcess, spark: SparkSession) -> Held:
    java = driver_jvm.java(spark).java.lang
    java.System.gc()
    time.sleep(2.0)  # Spark's cleaner works behind the collection
    java.System.gc()
    management = java.management.ManagementFactory
    pools = {str(pool.getName()): pool.getUsage().getUsed() for pool in management.getMemoryPoolMXBeans()}
    python, jvm = psutil.Process(host.record.pid), psutil.Process(driver_jvm.jvm_pid(spark))
    return Held(
        heap=management.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 1e6,
        metaspace=pools["Metaspace"] / 1e6,
        python=python.memory_info().rss / 1e6,
        classes=management.getClassLoadingMXBean().getLoadedClassCount(),
        threads=jvm.num_threads(),
        listeners=gateways.listeners(spark),
        files=jvm.num_fds(),
        sockets=len(jvm.net_connections()),
        temporary=sum(1 for _ in (host.folder / "tmp").rglob("*")),
    )
