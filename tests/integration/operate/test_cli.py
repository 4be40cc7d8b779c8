"""The verbs of `lozenge` that need a broker, and those that try a detector on its events."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from lozenge_deploy.observe.metrics_reader import MetricsReader
from tests.deploy.command import ROOT, lozenge, surroundings
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
        run = lozenge("status", "-o", "json", cwd=tmp_path, **kafka.variables)
    [row] = [row for row in json.loads(run.stdout) if row["app"] == "spotter"]
    assert (row["release"], row["records"]) == ("1.2.0", 7)

    send(kafka, [event(n, card=f"card_{n}") for n in range(20)])
    run = lozenge("peek", kafka.topics.events, "-n", "3", "-o", "json", cwd=tmp_path, **kafka.variables)
    rows = json.loads(run.stdout)
    assert len(rows) == 3
    assert all(row["value"]["event_id"].startswith("event-") for row in rows)
    run = lozenge("peek", "pay.nothing.v1", cwd=tmp_path, **kafka.variables)
    assert (run.returncode, "there is no such topic" in run.stderr) == (2, True)


def test_try_runs_a_detector_of_the_checkout_over_retained_events(kafka: KafkaSettings, tmp_path: Path) -> None:
    ensure_topics(kafka, kafka.topics.detector_topics("large_amount"))
    send(kafka, [event(n, card=f"tried_{n}", amount="9000.00") for n in range(3)])
    here = {"cwd": ROOT, **kafka.variables}
    run = lozenge("try", "large_amount", "--last", "10m", "-o", "json", **here)  # type: ignore[arg-type]
    assert run.returncode == 0, run.stderr
    [outcome] = json.loads(run.stdout)
    assert {f"tried_{n}" for n in range(3)} <= {alert["entity"] for alert in outcome["new"]}
    run = lozenge("try", "large_amount", "--last", "10m", "--set", "default_limit=a lot", **here)  # type: ignore[arg-type]
    assert (run.returncode, "default_limit" in run.stderr) == (2, True)


def test_watching_ends_with_130_on_ctrl_c(kafka: KafkaSettings, tmp_path: Path) -> None:
    environment = surroundings(**kafka.variables, PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "lozenge_deploy.cli", "status", "--watch", "-o", "json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_dev_runs_the_folder_alongside_the_live_release_and_again_after_a_change(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    (tmp_path / "detectors").mkdir()
    (tmp_path / "pyproject.toml").touch()
    assert lozenge("new", "spotter", cwd=tmp_path).returncode == 0
    module = tmp_path / "detectors" / "spotter" / "spotter.py"
    environment = surroundings(**kafka.variables, PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "lozenge_deploy.cli", "dev", "spotter"]
    alerts, log = tmp_path / "alerts", tmp_path / "log"
    with alerts.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=out, stderr=err, process_group=0)
    try:
        wait_for(lambda: log.read_text().count("query starts") == 1 or process.poll() is not None, "its first start")
        assert process.poll() is None, log.read_text()
        send(kafka, [event(1, card="dear", amount="600.00"), event(2, card="cheap", amount="400.00")])
        wait_for(lambda: "dear  medium  600.00 EUR at merchant m-1" in alerts.read_text(), "its first alert")
        module.write_text(module.read_text().replace("Decimal(500)", "Decimal(300)"))
        wait_for(lambda: log.read_text().count("query starts") == 2, "its second start")
        send(kafka, [event(3, card="cheap", amount="400.00")])
        wait_for(lambda: "cheap  medium  400.00 EUR" in alerts.read_text(), "an alert under the new limit")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    assert len(alerts.read_text().splitlines()) == 2
    assert not [topic for topic in partitions(kafka) if "spotter" in topic]
