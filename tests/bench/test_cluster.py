"""Jobs on a Spark standalone cluster, compared with the same jobs in a process of their own.

`python -m pytest -q -s tests/bench/test_cluster.py`: a master and two workers on this machine drain a backlog with
each kind of detector; `LOZENGE_BACKLOG` is how many events it has. What is asserted: the same alerts, each once.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.toolchain.java import java_home
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.ports import LOOPBACK, free_port
from tests.bench.backlog import charged_twice, produce
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import committed, ended_behind, group_offsets, wait_for
from tests.streams import every_topic

BACKLOG = int(os.environ.get("LOZENGE_BACKLOG", "500000"))
DETECTORS = Path(__file__).parents[2] / "detectors"
WORKERS = 2
_DAEMON = Path(pyspark.__file__).parent / "bin" / "spark-class"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker with the backlog."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap_mb=512) as broker:
        settings = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(settings, every_topic(TOPICS))
        produce(settings, charged_twice(BACKLOG))
        yield settings


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of as many workers of one core."""
    folder, port = tmp_path_factory.mktemp("cluster"), free_port(0)
    address = f"spark://{LOOPBACK}:{port}"
    here = ["--host", LOOPBACK, "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(_daemon(folder / "master", "master.Master", *here, "--port", str(port)))
        for number in range(WORKERS):
            work = folder / f"worker-{number}"
            size = ["--cores", "1", "--memory", "800m", "--work-dir", str(work)]
            stack.enter_context(_daemon(work, "worker.Worker", *here, *size, address))
        log = folder / "master" / "log"
        wait_for(lambda: log.read_text().count("Registering worker") == WORKERS, "the workers")
        yield address


@pytest.mark.parametrize("name", ["large_amount", "card_velocity", "duplicate_charge"])
def test_a_cluster_emits_the_same_alerts_as_one_process(
    kafka: KafkaSettings, master: str, tmp_path: Path, name: str
) -> None:
    emitted = []
    for release, variables in (("process", {}), ("cluster", {"LOZENGE_JOB_MASTER": master})):
        ensure_topics(kafka, TOPICS.shadow(name, release).contracts())
        seconds = _drain(kafka, tmp_path / release, name, release, variables)
        records = committed(kafka, TOPICS.shadow(name, release).alerts)
        emitted.append([dict(record.headers)["ce_id"] for record in records])
        print(
            f"\n{name}, {release}: {BACKLOG / seconds:,.0f} events/s with its start, {len(records)} alerts", flush=True
        )
    assert emitted[0]
    assert sorted(emitted[0]) == sorted(emitted[1])
    assert len(emitted[1]) == len(set(emitted[1]))


def _drain(kafka: KafkaSettings, folder: Path, name: str, release: str, variables: dict[str, str]) -> float:
    """Seconds from the start of a process concurrent with the live one to the commit of the last offset."""
    folder.mkdir()
    variables = variables | {
        "LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "LOZENGE_JOB_WORK": str(folder),
        "LOZENGE_JOB_CORES": str(WORKERS),
        "LOZENGE_JOB_LIVE": "false",
        "LOZENGE_JOB_RELEASE": release,
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    command = [sys.executable, "-m", "lozenge.job", f"{DETECTORS / name}{os.sep}"]
    began = time.monotonic()
    with (folder / "log").open("wb") as log:
        job = subprocess.Popen(command, env=os.environ | variables, stderr=log, process_group=0)
    with ended_behind(job, 60):
        wait_for(lambda: _done(kafka, f"{name}@{release}") or job.poll() is not None, "the end of the backlog")
        assert job.poll() is None, (folder / "log").read_text()
        return time.monotonic() - began


def _done(kafka: KafkaSettings, group: str) -> bool:
    return sum(offset for offset, _ in group_offsets(kafka, group).values()) == BACKLOG


@contextmanager
def _daemon(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    folder.mkdir()
    variables = {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    command = [str(_DAEMON), f"org.apache.spark.deploy.{name}", *arguments]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log, process_group=0)
    with ended_behind(daemon, 30):
        yield
