"""What an operator sees: status, metrics, logs and state, from a real broker."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Detector, Event, Fold, Settings, State, Tables, Timer, alert, fold
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from lozenge_deploy.local.ports import free_port
from lozenge_deploy.observe.group_lag import lag_of
from lozenge_deploy.observe.log_reader import LogReader
from lozenge_deploy.observe.metrics_reader import MetricsReader, Reading
from lozenge_deploy.supervision.log_shipper import Shipper
from tests.deploy.command import invoke, surroundings
from tests.integration import clients
from tests.integration.harness import NOW, alerts, event, new_detector, running, send, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def app() -> str:
    return f"app_{uuid.uuid4().hex[:8]}"


def called(kafka: KafkaSettings, cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return invoke(*arguments, cwd=cwd, **kafka.variables)


def answer(kafka: KafkaSettings, cwd: Path, *arguments: str) -> list[dict[str, Any]]:
    run = called(kafka, cwd, *arguments, "-o", "json")
    assert run.returncode == 0, run.stderr
    rows: list[dict[str, Any]] = json.loads(run.stdout)
    return rows


def reading(kafka: KafkaSettings, app: str) -> Reading:
    """What somebody who has just begun to read knows of `app`."""
    readings = MetricsReader(kafka)
    readings.catch_up()
    found = readings.reading(app)
    readings.close()
    assert found is not None
    return found


def test_totals_survive_the_instance_and_the_exporter(kafka: KafkaSettings, app: str) -> None:
    for generation, count in (("g1", 100), ("g2", 20)):
        metrics = JobMetrics(app, generation, "1.0.0")
        with Reporter(metrics, kafka):
            metrics.records(count)
            metrics.lag(3)
    now = reading(kafka, app)
    assert (now.records, now.instances, now.lag) == (120, 0, None)
    metrics = JobMetrics(app, "g3", "1.1.0")
    with Reporter(metrics, kafka):
        metrics.records(1)
        metrics.lag(3)
        wait_for(lambda: reading(kafka, app).instances, "the report of the third instance")
        now = reading(kafka, app)
    assert (now.records, now.instances, now.lag, now.release) == (121, 1, 3, "1.1.0")


def test_status_of_one_shows_its_position(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    rule = Detector(lambda events, settings, tables: events.select(*alert(reason=F.lit("seen"))), settings=Settings)
    loaded = new_detector(kafka, rule, tmp_path)
    with (
        running(loaded, kafka, spark, tmp_path, release="1.0.0", generation=7),
        Reporter(JobMetrics(loaded.name, "g7", "1.0.0"), kafka),
    ):
        send(kafka, [event(n) for n in range(5)])
        wait_for(lambda: len(alerts(kafka, loaded.name)) == 5, "5 alerts")
    producer = clients.clients(kafka).producer
    for junk in (b"junk", None):  # no alerts
        producer.produce(kafka.topics.detector(loaded.name).alerts, junk, b"k")
    assert producer.flush(30) == 0
    [row] = answer(kafka, tmp_path, "status", loaded.name)
    assert (row["release"], row["generation"], row["instances"]) == ("1.0.0", 7, 0)
    assert (row["committed_lag"], row["committed_lag_seconds"], row["alerts_last_hour"]) == (0, 0.0, 5)

    send(kafka, [event(n) for n in range(3)])
    run = called(kafka, tmp_path, "status", loaded.name)
    assert run.returncode == 0, run.stderr
    first = run.stdout.splitlines()[0]
    assert first.startswith(f"{loaded.name} 1.0.0, has not run for ")
    assert f", generation 7, batch {row['batch']}, " in first
    assert " s and 3 offsets" in first


def test_the_status_of_an_unknown_detector_is_a_usage_error(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    run = called(kafka, tmp_path, "status", app)
    assert (run.returncode, "it has never reported" in run.stderr) == (2, True)


def shipped(kafka: KafkaSettings, app: str) -> list[dict[str, Any]]:
    return LogReader(kafka, app).latest(10_000)[0]


def ship_until(shipper: Shipper, condition: Callable[[], object]) -> None:
    def shipping() -> object:
        shipper.ship()
        return condition()

    wait_for(shipping, "the lines to be shipped")


def ship_all(shipper: Shipper) -> None:
    """What the agent does when jobs have ended."""
    for file in shipper.following():
        shipper.unfollow(file)
    ship_until(shipper, lambda: not shipper.following())


def test_lines_arrive_in_order_with_their_process(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    ours = {"time": "2026-11-21T10:00:00Z", "level": "error", "app": "job", "event": "größer 😀", "batch": 7}
    log.write_text(json.dumps(ours) + "\n\nTraceback (most recent call last):\nthe last words")
    shipper = Shipper(kafka)
    shipper.follow(log, app, "g1", "1.0.0")
    ship_until(shipper, lambda: len(shipped(kafka, app)) == 2)
    with log.open("a") as file:
        file.write(" of a job")
    ship_all(shipper)
    lines = shipped(kafka, app)
    assert lines[0] == ours | {"app": app, "instance": "g1", "release": "1.0.0"}
    assert [line["event"] for line in lines[1:]] == ["Traceback (most recent call last):", "the last words of a job"]
    assert {(line["app"], line["instance"]) for line in lines} == {(app, "g1")}


def test_lines_of_a_file_of_several_apps_are_each_of_its_own(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "host.log"
    other = f"{app}_other"
    log.write_text("".join(json.dumps({"event": name, "app": name}) + "\n" for name in (app, other, app)))
    shipper = Shipper(kafka)
    shipper.follow(log, "nobody", "h1", "", lambda line: str(line["app"]))
    ship_until(shipper, lambda: len(shipped(kafka, app)) == 2)
    ship_all(shipper)
    for name, count in ((app, 2), (other, 1)):
        expected = {"event": name, "app": name, "instance": "h1", "release": ""}
        assert shipped(kafka, name) == [expected] * count


def test_a_new_shipper_continues_where_the_last_one_was(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    for part in range(3):
        with log.open("a") as file:
            file.writelines(f"line {part}-{n}\n" for n in range(2500))
        shipper = Shipper(kafka)
        shipper.follow(log, app, "g1", "1.0.0")
        ship_all(shipper)
    expected = [f"line {part}-{n}" for part in range(3) for n in range(2500)]
    assert [line["event"] for line in shipped(kafka, app)] == expected


def test_a_file_that_is_full_is_emptied_and_no_line_is_lost(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    shipper = Shipper(kafka, cap=2000)
    shipper.follow(log, app, "g1", "1.0.0")
    with log.open("a") as file:
        for hundred in range(5):
            for n in range(100):
                file.write(f"a line with the number {100 * hundred + n}\n")
                file.flush()
                shipper.ship()
                assert log.stat().st_size < 4000
                time.sleep(0.005)
            ship_until(shipper, lambda: log.stat().st_size < 2000)
    ship_all(shipper)
    assert [line["event"] for line in shipped(kafka, app)] == [f"a line with the number {n}" for n in range(500)]


def test_what_waited_for_the_broker_is_shipped_or_reported_as_dropped(
    kafka: KafkaSettings, app: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.log"
    log.write_text("before\n" * 1000)
    away = Shipper(KafkaSettings(bootstrap="127.0.0.1:9"), cap=1000)
    away.follow(log, app, "g1", "1.0.0")
    away.ship()
    away.close(0)
    assert log.stat().st_size == 0
    with log.open("a") as file:
        file.write("after\n")
    shipper = Shipper(kafka)
    shipper.follow(log, app, "g1", "1.0.0")
    ship_all(shipper)
    dropped, after = shipped(kafka, app)
    assert (dropped["event"], dropped["level"], dropped["bytes"]) == ("log dropped", "warning", 7000)
    assert after["event"] == "after"


def test_a_flood_of_one_does_not_hold_up_another(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    flood, quiet = tmp_path / "flood.log", tmp_path / "quiet.log"
    flood.write_text("flood\n" * 200_000 + "😀" * 300_000)
    quiet.write_text("quiet\n")
    shipper = Shipper(kafka)
    shipper.follow(flood, f"{app}_flood", "g1", "1.0.0")
    shipper.follow(quiet, app, "g1", "1.0.0")
    ship_until(shipper, lambda: shipped(kafka, app))
    assert flood.stat().st_size > 1_000_000
    assert len(shipped(kafka, f"{app}_flood")) < 10_000
    shipper.close()


def test_a_line_that_is_too_long_comes_in_pieces(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("ü\x01" * 300_000 + "\nnext\n")
    shipper = Shipper(kafka)
    shipper.follow(log, app, "g1", "1.0.0")
    ship_all(shipper)
    *pieces, last = [line["event"] for line in shipped(kafka, app)]
    assert ("".join(pieces), len(pieces), last) == ("ü\x01" * 300_000, 4, "next")


def test_logs_shows_lines_for_people_and_for_programs(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    lines = [
        {"time": f"2026-11-21T10:00:0{n}.123456Z", "level": level, "event": "resumed", "batch": n}
        for n, level in enumerate(("debug", "info", "warn", "error"))
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shipper = Shipper(kafka)
    shipper.follow(log, app, "g1", "1.0.0")
    ship_all(shipper)
    run = called(kafka, tmp_path, "logs", app, "-n", "2")
    assert run.stdout.splitlines() == [
        "2026-11-21T10:00:02.123  warning  g1/1.0.0  resumed  batch=2",
        "2026-11-21T10:00:03.123  error    g1/1.0.0  resumed  batch=3",
    ]
    run = called(kafka, tmp_path, "logs", app, "--level", "warning", "-o", "json")
    assert [json.loads(line)["batch"] for line in run.stdout.splitlines()] == [2, 3]
    run = called(kafka, tmp_path, "logs", app, "--level", "critical")
    assert (run.returncode, run.stdout, "at level critical or above" in run.stderr) == (0, "", True)
    run = called(kafka, tmp_path, "logs", f"{app}_other")
    assert (run.returncode, run.stdout) == (2, "")
    assert "it has never run" in run.stderr


def test_logs_follows_until_ctrl_c(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("one\n")
    shipper = Shipper(kafka)
    shipper.follow(log, app, "g1", "1.0.0")
    ship_until(shipper, lambda: shipped(kafka, app))
    environment = surroundings(**kafka.variables, PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "lozenge_deploy.cli", "logs", app, "-f", "-o", "json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "one"
        with log.open("a") as file:
            file.write("two\n")
        ship_all(shipper)
        assert json.loads(process.stdout.readline())["event"] == "two"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


class Seen(State):
    total: Decimal = Decimal(0)
    last: datetime | None = None


def _step(state: Seen, event: Event, settings: Settings) -> Iterator[Timer]:
    state.total += event.amount
    state.last = event.event_time
    yield Timer(event.event_time + timedelta(hours=1))


def _fold(events: DataFrame, settings: Settings, tables: Tables) -> Fold[Seen]:
    return fold(events, by=("card_id", "merchant_id"), state=Seen, step=_step, expires=timedelta(days=1))


def test_state_shows_what_a_fold_remembers(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    loaded = new_detector(kafka, Detector(_fold, settings=Settings), tmp_path, kind="stateful")
    with running(loaded, kafka, spark, tmp_path):
        send(kafka, [event(1, "card_1"), event(2, "card_1", "12.50"), event(3, "card_2", merchant_id="m-2")])
        wait_for(lambda: (now := lag_of(kafka, loaded.name)) and now.offsets == 0, "the events to be processed")
    assert len(answer(kafka, tmp_path, "state", loaded.name, "m-2")) == 1
    [entry] = answer(kafka, tmp_path, "state", loaded.name, "card_1")
    assert entry == {
        "key": ["card_1", "m-1"],
        "clock": NOW.isoformat(),
        "timers": [(NOW + timedelta(hours=1)).isoformat()],
        "state": {"total": "22.5000", "last": "2026-03-01T12:00:00Z"},
    }
    run = called(kafka, tmp_path, "state", loaded.name, "m-1")
    assert '{"total": "22.5000", ' in run.stdout
    assert "card_2" not in run.stdout
    run = called(kafka, tmp_path, "state", loaded.name, "card_3")
    assert (run.returncode, run.stdout, "has no state of card_3" in run.stderr) == (0, "", True)


def test_state_of_an_aggregate_goes_by_alert_id(kafka: KafkaSettings, app: str, tmp_path: Path) -> None:
    ensure_topics(kafka, kafka.topics.detector(app).contracts())
    producer = Producer(kafka.client())
    for key, value in ((b"gone", b"x"), (b"an-id", NOW.isoformat().encode()), (b"gone", None)):
        producer.produce(kafka.topics.detector(app).state, value, key, 0)
    assert producer.flush(10) == 0
    assert answer(kafka, tmp_path, "state", app, "an-id") == [{"key": ["an-id"], "closes": NOW.isoformat()}]
    assert answer(kafka, tmp_path, "state", app, "gone") == []
    run = called(kafka, tmp_path, "state", f"{app}_other", "an-id")
    assert (run.returncode, "there is no topic" in run.stderr) == (2, True)


def test_prometheus_finds_the_totals_of_all_instances(kafka: KafkaSettings, app: str) -> None:
    for generation in ("g1", "g2"):
        with Reporter(metrics := JobMetrics(app, generation, "1.0.0"), kafka):
            metrics.records(30)
    port = free_port(0)
    command = [sys.executable, "-m", "lozenge_deploy.observe.exporter"]
    environment = os.environ | kafka.variables | {"LOZENGE_EXPORTER_PORT": str(port)}

    def exported() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
                return str(response.read(), "utf-8")
        except OSError:
            return ""

    with subprocess.Popen(command, env=environment) as exporter:
        try:
            wait_for(lambda: "lozenge_records_total" in exported(), "the exporter")
            assert f'lozenge_records_total{{app="{app}"}} 60.0' in exported()
            assert f'lozenge_instances{{app="{app}",release="1.0.0"}} 0.0' in exported()
        finally:
            exporter.terminate()
        assert exporter.wait(60) == 0, "it ends at once and in order"
