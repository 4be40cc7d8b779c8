"""The verbs of `lozenge` that need a broker."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from lozenge_deploy.observe.metrics_reader import MetricsReader
from tests.deploy.command import invoke, surroundings
from tests.integration.harness import event, send, wait_for

pytestmark = pytest.mark.integration


def test_status_shows_what_reports_and_peek_what_was_sent(kafka: KafkaSettings, tmp_path: Path) -> None:
    metrics = JobMetrics("spotter", "g1", "1.2.0")
    metrics.records(7)

    def reported() -> bool:
        readings = MetricsReader(kafka)
        readings.catch_up()
        found = readings.reading("spotter")
        readings.close()
        return found is not None

    with Reporter(metrics, kafka):
        wait_for(reported, "its first report")
        run = invoke("status", "-o", "json", cwd=tmp_path, **kafka.variables)
    [row] = [row for row in json.loads(run.stdout) if row["app"] == "spotter"]
    assert (row["release"], row["records"]) == ("1.2.0", 7)

    send(kafka, [event(n, card=f"card_{n}") for n in range(20)])
    run = invoke("peek", kafka.topics.events("auth"), "-n", "3", "-o", "json", cwd=tmp_path, **kafka.variables)
    rows = json.loads(run.stdout)
    assert len(rows) == 3
    assert all(row["value"]["event_id"].startswith("event-") for row in rows)
    run = invoke("peek", "pay.nothing.v1", cwd=tmp_path, **kafka.variables)
    assert (run.returncode, "there is no such topic" in run.stderr) == (2, True)


def test_a_topic_that_is_misspelt_is_answered_with_the_near_ones_and_peek_alone_lists_all(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    topic = kafka.topics.events("auth")
    run = invoke("peek", topic.replace("canonical", "cannonical"), cwd=tmp_path, **kafka.variables)
    assert f"near to it: {topic}, " in run.stderr
    assert run.stderr.count(",") <= 5
    assert "`lozenge peek` lists all" in run.stderr
    listed = [row["topic"] for row in json.loads(invoke("peek", "-o", "json", cwd=tmp_path, **kafka.variables).stdout)]
    assert topic in listed
    assert listed == sorted(listed)


def test_watching_ends_with_130_on_ctrl_c(kafka: KafkaSettings, tmp_path: Path) -> None:
    environment = surroundings(**kafka.variables, PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "lozenge_deploy.cli", "status", "--watch", "-o", "json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
