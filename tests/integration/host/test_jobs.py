"""A job with a session on a host keeps every promise of a job with a JVM of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from lozenge.host.tool_host import warm_host
from lozenge.job.fork_client import SOCKET
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.protocol.job_status import HOST_GONE
from tests.integration.harness import alerts, begin_at_the_end, event, send, wait_for
from tests.integration.job.killing import detector_folder, job_process, run_through_a_kill
from tests.waiting import until

RULE = """
from pyspark.sql import functions as F

from lozenge import Detector, Settings, alert


def detect(events, settings, tables):
    return events.where("amount > 100").select(*alert(reason=F.lit("large")))


detector = Detector(detect, settings=Settings)
"""
FOLD = """
from datetime import timedelta

from lozenge import Alert, Detector, Settings, State, fold


class Count(State):
    count: int = 0


def step(state, event, settings):
    state.count += 1
    yield Alert(reason=str(state.count), evidence=[event.event_id])


def detect(events, settings, tables):
    return fold(events, by="card_id", state=Count, step=step, expires=timedelta(days=1))


detector = Detector(detect, settings=Settings)
"""
MANY = 500


def burst(first: int) -> list[dict[str, object]]:
    return [event(n, card=f"card_{n % 13}", amount="150.00") for n in range(first, first + MANY)]


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs on the host are forks of a fork server, as on a host of the agent."""
    monkeypatch.setenv("LOZENGE_BASE", "tests")
    host = warm_host()
    command = [sys.executable, "-m", "lozenge.job.fork_server", str(host), str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=host) as server:
        until((host / SOCKET).exists)
        yield
        server.kill()
    (host / SOCKET).unlink()


def is_fork(job: "subprocess.Popen[bytes]") -> bool:
    """Whether the process that was started only represents a fork."""
    return psutil.Process(job.pid).name() == "sh"


@pytest.mark.parametrize(
    ("kind", "module", "forked"), [("rule", RULE, False), ("rule", RULE, True), ("stateful", FOLD, True)]
)
def test_a_job_that_is_killed_loses_and_doubles_nothing(
    kafka: KafkaSettings,
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: str,
    module: str,
    forked: bool,
) -> None:
    if forked:
        request.getfixturevalue("forks")
    folder = detector_folder(tmp_path, module, {"kind": kind, "trigger": "100ms"})
    run_through_a_kill(kafka, spark, folder, (burst(0), burst(MANY)), MANY, kind, warm_host())
    found = alerts(kafka, folder.name)
    ids = [alert["evidence"]["event_ids"][0] for alert in found]
    assert len(ids) == len(set(ids)) == 2 * MANY
    if kind == "stateful":
        assert max(int(alert["reason"]) for alert in found) == -(-2 * MANY // 13)


@pytest.mark.usefixtures("forks")
def test_the_kill_of_one_job_is_not_noticed_by_its_neighbour(kafka: KafkaSettings, tmp_path: Path) -> None:
    host, folders = (
        warm_host(),
        [detector_folder(tmp_path, RULE, {"kind": "rule", "trigger": "100ms"}) for _ in range(2)],
    )
    logs = [tmp_path / f"log-{number}" for number in range(2)]
    for folder in folders:
        ensure_topics(kafka, kafka.topics.detector(folder.name).contracts())
        begin_at_the_end(kafka, folder.name, "rule")
    with job_process(kafka, folders[0], 1, logs[0], host) as stays:
        with job_process(kafka, folders[1], 1, logs[1], host):
            wait_for(lambda: all("query starts" in log.read_text() for log in logs), "their starts")
            send(kafka, burst(0))
            wait_for(lambda: all(alerts(kafka, folder.name) for folder in folders), "alerts of both")
            assert is_fork(stays)
        send(kafka, burst(MANY))
        wait_for(lambda: len(alerts(kafka, folders[0].name)) >= 2 * MANY, "the alerts of the other")
        assert stays.poll() is None
    assert len(alerts(kafka, folders[0].name)) == 2 * MANY
    assert "ERROR" not in logs[0].read_text().upper().replace("NO ERROR", "")


def test_a_job_whose_tasks_never_end_is_refused_on_a_host(kafka: KafkaSettings, tmp_path: Path) -> None:
    folder = detector_folder(tmp_path, RULE, {"kind": "rule", "mode": "realtime"})
    variables = kafka.variables | {"LOZENGE_JOB_WORK": str(tmp_path), "LOZENGE_JOB_HOST": str(tmp_path)}
    command = [sys.executable, "-m", "lozenge.job", f"{folder}{os.sep}"]
    run = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert run.returncode == 2
    assert "its tasks would keep the cores of others" in run.stderr


def test_a_job_without_its_host_says_so(kafka: KafkaSettings, tmp_path: Path) -> None:
    folder = detector_folder(tmp_path, RULE, {"kind": "rule"})
    variables = kafka.variables | {"LOZENGE_JOB_WORK": str(tmp_path), "LOZENGE_JOB_HOST": str(tmp_path / "none")}
    command = [sys.executable, "-m", "lozenge.job", f"{folder}{os.sep}"]
    run = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert run.returncode == HOST_GONE
    assert "no host runs there" in run.stderr
