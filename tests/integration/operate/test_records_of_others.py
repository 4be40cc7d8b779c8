"""Views of topics to which others write too: whatever is there is shown, and hides nothing that is next to it."""

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.metrics.reporter import Reporter
from tests.deploy.command import invoke
from tests.integration.clients import clients
from tests.integration.harness import wait_for

pytestmark = pytest.mark.integration

DEEP = b"[" * 5000 + b"]" * 5000
LATEST_TIMESTAMP = "message.timestamp.after.max.ms"
HOSTILE = b"\x1b[2J\x1b]0;owned\x07"
Called = Callable[..., str]


@pytest.fixture
def name() -> str:
    return f"views_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def called(kafka: KafkaSettings, tmp_path: Path) -> Called:
    """What a command that succeeds prints; nothing of it acts on a terminal."""

    def call(*arguments: str) -> str:
        run = invoke(*arguments, cwd=tmp_path, **kafka.variables)
        assert run.returncode == 0, run.stderr
        assert "\x1b" not in run.stdout + run.stderr
        return run.stdout

    return call


def topic(kafka: KafkaSettings, name: str, **config: str) -> str:
    full = kafka.topics.prefixed(name)
    clients(kafka).admin.create_topics([NewTopic(full, 1, 1, config=config)])[full].result(30)
    return full


def write(kafka: KafkaSettings, topic: str, *values: bytes | None, partition: int = 0, **more: Any) -> None:
    producer = clients(kafka).producer
    for value in values:
        producer.produce(topic, value, partition=partition, **{"key": b"k"} | more)
    assert producer.flush(30) == 0


def shown(called: Called, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(called(*arguments, "-o", "json"))
    return found


def test_peek_shows_records_that_no_program_should_have_written(
    kafka: KafkaSettings, name: str, called: Called
) -> None:
    raw = topic(kafka, name)
    write(kafka, raw, DEEP, b'{"x":' + DEEP + b"}", b'{"n":NaN}', b'"\\ud800"', b"9" * 5000, HOSTILE, None, b"\xff\x00")
    write(kafka, raw, b"good", headers={"h\x1b": b"\x1b[2J"})
    values = [row["value"] for row in shown(called, "peek", raw)]
    assert [values[0], values[6], values[7], values[8]] == [DEEP.decode(), None, "ff00", "good"]
    table = called("peek", raw)
    assert r"\x1b[2J\x1b]0;owned\x07" in table
    assert "good" in table


@pytest.mark.parametrize("milliseconds", [1_772_366_400_000_000, 1_772_366_400, 1, 2**62])
def test_a_record_of_another_age_is_shown_and_hides_no_newer_one(
    kafka: KafkaSettings, name: str, called: Called, milliseconds: int
) -> None:
    raw = topic(kafka, name, **{LATEST_TIMESTAMP: str(2**63 - 1), "retention.ms": "-1"})
    write(kafka, raw, b"strange", timestamp=milliseconds)
    [row] = shown(called, "peek", raw)
    assert row["value"] == "strange"
    assert str(milliseconds) in row["time"] or row["time"].startswith("1970-01-")
    write(kafka, raw, b"newer")
    assert [row["value"] for row in shown(called, "peek", raw, "-n", "1")] == ["newer"]


def test_the_newest_records_are_found_behind_those_that_were_aborted_or_compacted(
    kafka: KafkaSettings, name: str, called: Called
) -> None:
    raw = topic(kafka, name)
    write(kafka, raw, *(f"kept {n}".encode() for n in range(10)))
    producer = Producer(kafka.client(transactional_id=name))
    producer.init_transactions(30)
    for _ in range(30):
        producer.begin_transaction()
        producer.produce(raw, b"aborted", partition=0)
        producer.flush(30)
        producer.abort_transaction(30)
    assert [row["value"] for row in shown(called, "peek", raw, "-n", "5")] == [f"kept {n}" for n in range(5, 10)]

    producer.begin_transaction()
    producer.produce(raw, b"the last one", partition=0)
    producer.commit_transaction(30)
    wait_for(lambda: shown(called, "peek", raw, "-n", "1")[0]["value"] == "the last one", "the commit")


def test_dead_letters_of_others_are_listed_and_shown(kafka: KafkaSettings, name: str, called: Called) -> None:
    contracts = kafka.topics.detector(name).contracts()
    dead_letters = kafka.topics.dead_letters(name)
    free = {LATEST_TIMESTAMP: str(2**63 - 1)}
    ensure_topics(kafka, [replace(c, config={**c.config, **free}) if c.name == dead_letters else c for c in contracts])
    for value in (DEEP, HOSTILE, b"\xff", None):
        write(kafka, dead_letters, value, timestamp=1_772_366_400_000_000, headers={"attempt": b"x" * 5, "h": HOSTILE})
    [row] = [row for row in shown(called, "dlq", "ls") if row["unresolved"] == 4]
    assert row["newest"].startswith("9999-")
    assert len(shown(called, "dlq", "show", name)) == 4
    called("dlq", "show", name)
    for offset, expected in enumerate([DEEP.decode(), HOSTILE.decode(), "ff", None]):
        assert shown(called, "dlq", "show", name, f"0:{offset}")[0]["value"] == expected
        called("dlq", "show", name, f"0:{offset}")


PAN, HIDDEN = "4000000000000002", "400000******0002"


def test_card_numbers_are_shown_only_on_request_and_the_request_is_recorded(
    kafka: KafkaSettings, name: str, called: Called
) -> None:
    raw, dead = topic(kafka, name), kafka.topics.dead_letters(name)
    ensure_topics(kafka, kafka.topics.detector(name).contracts())
    for each in (raw, dead):
        value = f'{{"pan": {PAN}, "merchant": "REFUND {PAN}"}}'.encode()
        write(kafka, each, value, b"text " + PAN.encode(), b"\xff" + PAN.encode(), key=PAN.encode(), headers={"h": PAN})
    views = [["peek", raw], ["dlq", "show", name], ["dlq", "show", name, "0:0"], ["dlq", "show", name, "0:2"]]
    for view in views:
        for form in ("table", "wide", "json"):
            printed = called(*view, "-o", form)
            assert PAN not in printed
            assert PAN.encode().hex() not in printed
            assert HIDDEN in printed
    assert PAN not in called("dlq", "ls", name) + called("dlq", "drop", name, "--all", "--dry-run")

    before = len(shown(called, "peek", kafka.topics.control.audit.name, "-n", "100")) if audited(kafka) else 0
    for view in views:
        assert PAN in called(*view, "--card-numbers")
    records = [row["value"] for row in shown(called, "peek", kafka.topics.control.audit.name, "-n", "100")][before:]
    assert [record["target"] for record in records] == [
        f"{raw} 0:0 0:1 0:2",
        f"{dead} 0:0 0:1 0:2",
        f"{dead} 0:0",
        f"{dead} 0:2",
    ]
    assert {record["action"] for record in records} == {"card numbers shown"}
    assert all(record["by"] and record["host"] and record["at"] for record in records)


def audited(kafka: KafkaSettings) -> bool:
    return kafka.topics.control.audit.name in partitions(kafka)


def test_junk_among_the_metrics_changes_nothing_of_what_the_apps_report(
    kafka: KafkaSettings, name: str, called: Called
) -> None:
    metrics = JobMetrics(name, "g1", "r1")
    metrics.records(7)
    with Reporter(metrics, kafka):
        wait_for(lambda: metrics and name in called("status"), "its first report")
    sound = {"app": name, "instance": "g2", "release": "r9", "samples": {}}
    future = json.dumps(sound | {"time": 4e12}).encode()
    write(kafka, kafka.topics.metrics, b"[]", b"null", b"text", b"{}", DEEP, b"\xff", future, key=name.encode())
    [row] = shown(called, "status", name)
    assert (row["records"], row["release"]) == (7, "r1")
    called("status")


def test_junk_among_the_log_lines_is_shown_as_text(kafka: KafkaSettings, name: str, called: Called) -> None:
    from lozenge.contracts.partitioner import partition_of
    from lozenge.contracts.topics import LOG_PARTITIONS

    partition = partition_of(name.encode(), LOG_PARTITIONS)
    values = (b"[]", b"null", b"text\nof two lines", HOSTILE, DEEP, b"\xff", b'{"event": [], "level": {}}', b"")
    write(kafka, kafka.topics.logs, *values, partition=partition, key=name.encode())
    write(kafka, kafka.topics.logs, b'{"event": "good"}', partition=partition, key=name.encode())
    lines = called("logs", name).splitlines()
    assert len(lines) == len(values) + 1
    assert lines[-1].endswith("good")
    assert r"text\nof two lines" in lines[2]
    assert [json.loads(line)["event"] for line in called("logs", name, "-o", "json").splitlines()][-1] == "good"
