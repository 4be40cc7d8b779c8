"""What an operator sees: status, metrics, logs and state, from a real broker."""

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Settings, alert, topics
from lozenge.admin import ensure_topics
from lozenge.kafka import KafkaSettings
from lozenge.metrics import Metrics, Reporter
from lozenge_deploy.readings import Reading, Readings
from tests.deploy.test_cli import lozenge
from tests.integration.conftest import Broker
from tests.integration.harness import alerts, event, new_detector, running, send, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def kafka(broker: Broker) -> KafkaSettings:
    settings = KafkaSettings(bootstrap=broker.bootstrap)
    ensure_topics(settings, topics.platform_topics())
    return settings


@pytest.fixture
def app() -> str:
    return f"app_{uuid.uuid4().hex[:8]}"


def called(kafka: KafkaSettings, cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return lozenge(*arguments, cwd=cwd, LOZENGE_KAFKA_BOOTSTRAP=kafka.bootstrap)


def answer(kafka: KafkaSettings, cwd: Path, *arguments: str) -> list[dict[str, Any]]:
    run = called(kafka, cwd, *arguments, "-o", "json")
    assert run.returncode == 0, run.stderr
    rows: list[dict[str, Any]] = json.loads(run.stdout)
    return rows


def reading(kafka: KafkaSettings, app: str) -> Reading:
    """What somebody who has just begun to read knows of `app`."""
    readings = Readings(kafka)
    readings.catch_up()
    found = readings.reading(app)
    readings.close()
    assert found is not None
    return found


def test_totals_outlive_the_instance_and_whoever_adds_them_up(kafka: KafkaSettings, app: str) -> None:
    for generation, count in (("g1", 100), ("g2", 20)):
        metrics = Metrics(app, generation, "1.0.0")
        with Reporter(metrics, kafka):
            metrics.records(count)
            metrics.lag(3)
    now = reading(kafka, app)
    assert (now.records, now.instances, now.lag) == (120, 0, 0)
    metrics = Metrics(app, "g3", "1.1.0")
    with Reporter(metrics, kafka):
        metrics.records(1)
        metrics.lag(3)
        wait_for(lambda: reading(kafka, app).instances, "the report of the third instance")
        now = reading(kafka, app)
    assert (now.records, now.instances, now.lag, now.release) == (121, 1, 3, "1.1.0")


def test_status_of_one_says_where_it_stands(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    rule = Detector(lambda events, settings, tables: events.select(*alert(reason=F.lit("seen"))), settings=Settings)
    loaded = new_detector(kafka, rule, tmp_path)
    with (
        running(loaded, kafka, spark, tmp_path, release="1.0.0", generation=7),
        Reporter(Metrics(loaded.name, "g7", "1.0.0"), kafka),
    ):
        send(kafka, [event(n) for n in range(5)])
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 5, "5 alerts")
    [row] = answer(kafka, tmp_path, "status", loaded.name)
    assert (row["release"], row["generation"], row["instances"]) == ("1.0.0", 7, 0)
    assert (row["behind_offsets"], row["behind_seconds"], row["alerts_last_hour"]) == (0, 0.0, 5)

    send(kafka, [event(n) for n in range(3)])
    run = called(kafka, tmp_path, "status", loaded.name)
    assert run.returncode == 0, run.stderr
    first = run.stdout.splitlines()[0]
    assert first.startswith(f"{loaded.name} 1.0.0, which has not run for ")
    assert f", generation 7, batch {row['batch']}: 3 offsets and " in first


def test_status_of_who_never_reported_is_a_usage_error(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    run = called(kafka, tmp_path, "status", app)
    assert (run.returncode, "it has never reported" in run.stderr) == (2, True)
