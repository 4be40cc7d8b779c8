"""The verifier as the process that it is: it accepts a sound log, and refuses one alert that is duplicated or lost."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import write_deltalake

from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.local.redis_server import LocalRedis
from tests.brokers import Broker, own_platform
from tests.faults import file_rows, oracle
from tests.faults.campaign import ROOT
from tests.faults.plan import ARCHIVE_SINK, DETECTORS
from tests.faults.records import Raw, record
from tests.faults.records import row as row_of
from tests.faults.stores import CACHE
from tests.faults.verify import DELIVERIES, FILE_ROW, RECEIPTS, committed, decoded
from tests.streams import AUTH, RAW_JSON, event_codec

pytestmark = pytest.mark.integration

NOW = datetime.now(UTC).replace(microsecond=0)
"""A broker would soon remove records that are older than the retention of their topic."""
RECORDS, ROWS = 3000, 300


class Log:
    """A sound log of raw records, `ROWS` of them of a file, and all that comes of them, written by hand."""

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self.producer, topics = Producer(kafka.client()), kafka.topics
        self.alerts: list[tuple[str, bytes]] = []
        start = int(NOW.timestamp() * 1000)
        ends = [0] * topics.partitions
        payments, receipts = [], []
        self.raw = topics.prefixed(RAW_JSON)
        rows = [row_of(5, 0, number, (start + number) * 1000) for number in range(ROWS)]
        self.files = folder / "files"
        self.files.mkdir()
        file_rows.write(self.files, "a.parquet", rows)
        sent = [(record(5, n, (start + n) * 1000), {"number": str(n)}) for n in range(RECORDS)]
        sent += [
            (Raw(row["pan"].encode(), json.dumps(row).encode()), {FILE_ROW: f"a.parquet:{n}"})
            for n, row in enumerate(rows)
        ]
        for number, (raw, headers) in enumerate(sent):
            partition = partition_of(raw.key, topics.partitions)
            position = partition, ends[partition]
            ends[partition] += 1
            self.send(self.raw, raw.value, partition, headers, start + number)
            if "number" in headers:
                receipts.append(f"{number} {position[0]} {position[1]}\n")
            if payment := oracle.payment(position, raw.value, start + number):
                payments.append(payment)
                self.send(topics.events("auth"), event_codec().encode(_event(payment)), partition)
            else:
                where = {"__connect.errors.partition": str(position[0]), "__connect.errors.offset": str(position[1])}
                self.send(topics.dead_letters("upstream"), raw.value, partition, where)
        written = 0
        for name, expected in oracle.alerts(payments).items():
            for alert in expected:
                self.alerts.append((topics.detector(name).alerts, Codec.of("alert").encode(_alert(name, alert))))
                self.send(*self.alerts[-1])
                notification = Codec.of("notification").encode(_notification(written, alert.alert_id))
                self.send(topics.notifications, notification)
                written += 1
        assert self.producer.flush(30) == 0
        (folder / RECEIPTS).write_text("".join(receipts))
        (folder / DELIVERIES).write_text("".join(f"n-{n} n-{n}\n" for n in range(written)))

    def send(
        self, topic: str, value: bytes, partition: int = 0, headers: dict[str, str] | None = None, at: int = 0
    ) -> None:
        """Writes one record."""
        given: dict[str, str | bytes | None] = dict(headers or {})
        self.producer.produce(topic, value, b"key", partition, headers=given, timestamp=at)
        self.producer.poll(0)


@pytest.fixture
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    """A platform of its own: the verifier reads its topics whole."""
    with own_platform(broker) as platform:
        ensure_topics(platform, [topic for d in DETECTORS for topic in platform.topics.detector(d).contracts()])
        yield platform


def test_a_sound_log_holds_and_one_alert_more_or_less_does_not(kafka: KafkaSettings, tmp_path: Path) -> None:
    log = Log(kafka, tmp_path)
    code, result = _verify(kafka, tmp_path)
    assert (code, result["wrong"]) == (0, [])
    assert result["counts"]["raw records"] == RECORDS + ROWS
    assert result["counts"]["rows that were copied"] == result["counts"]["rows of files"] == ROWS
    assert result["counts"]["notifications"] == len(log.alerts) > 20

    log.send(*log.alerts[0])
    assert log.producer.flush(30) == 0
    code, result = _verify(kafka, tmp_path)
    assert code == 1
    assert [(w["name"], w["stage"], w["count"]) for w in result["wrong"]] == [("duplicate", "each_large", 1)]

    (tmp_path / DELIVERIES).write_text((tmp_path / DELIVERIES).read_text().partition("\n")[2])
    code, result = _verify(kafka, tmp_path)
    assert (code, [w["name"] for w in result["wrong"]]) == (1, ["duplicate", "unseen"])


def test_a_row_of_a_file_that_is_copied_again_does_not_hold(kafka: KafkaSettings, tmp_path: Path) -> None:
    log = Log(kafka, tmp_path)
    again = row_of(5, 0, 0, int(NOW.timestamp() * 1_000_000))
    log.send(log.raw, json.dumps(again).encode(), headers={FILE_ROW: "a.parquet:0"})
    assert log.producer.flush(30) == 0
    code, result = _verify(kafka, tmp_path)
    assert code == 1
    assert ("duplicate", "files", 1) in [(w["name"], w["stage"], w["count"]) for w in result["wrong"]]


def test_tables_and_a_cache_hold_and_a_row_less_and_an_older_event_do_not(kafka: KafkaSettings, tmp_path: Path) -> None:
    Log(kafka, tmp_path)
    ensure_topics(kafka, [kafka.topics.dead_letter_topic(ARCHIVE_SINK)])
    archive, latest = tmp_path / "archive", dict[str, str]()
    topics = kafka.topics
    alerts = [topics.detector(name).alerts for name in DETECTORS]
    for topic in (topics.events("auth"), topics.dead_letters("upstream"), topics.notifications, *alerts):
        places = [(record.partition, record.offset) for record in committed(kafka.bootstrap, topic)]
        write_deltalake(archive / topic, _rows(places))
    for event in decoded((r.value for r in committed(kafka.bootstrap, topics.events("auth"))), AUTH.wire_schema):
        latest[event["card_id"]] = event["event_id"]
    with LocalRedis(tmp_path / "cache") as server, closing(server.client()) as client:
        for card_id, event_id in latest.items():
            client.hset(f"{{{CACHE}}}:{card_id}", "value", json.dumps({"event_id": event_id}))
        options = ["--archive", str(archive), "--cache", server.url]
        code, result = _verify(kafka, tmp_path, *options)
        assert (code, result["wrong"]) == (0, [])
        assert result["counts"]["rows of the archive"] > RECORDS
        assert result["counts"]["keys of the cache"] == len(latest) > 100

        client.hset(f"{{{CACHE}}}:{card_id}", "value", json.dumps({"event_id": "older"}))
        write_deltalake(archive / alerts[0], _rows([(0, 0)]), mode="overwrite")
        code, result = _verify(kafka, tmp_path, *options)
    assert code == 1
    assert {(w["name"], w["stage"]) for w in result["wrong"]} == {("unexpected", "cache"), ("unseen", "archive")}


def _rows(places: list[oracle.PartitionOffset]) -> pa.Table:
    return pa.table({"partition": [p for p, _ in places], "offset": [o for _, o in places]})


def _verify(kafka: KafkaSettings, folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.faults.verify", str(folder), "--bootstrap", kafka.bootstrap]
    files = str(folder / "files")
    command += ["--prefix", kafka.topic_prefix, "--detectors", ",".join(DETECTORS), "--files", files, *more]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout)


def _event(payment: oracle.Payment) -> dict[str, Any]:
    words = dict.fromkeys(("merchant_id", "terminal_id", "mcc", "country", "currency", "channel", "auth_result"), "x")
    raw = {
        "source": "s",
        "topic": "t",
        "partition": payment.position[0],
        "offset": payment.position[1],
        "timestamp": NOW,
    }
    own = {"event_id": payment.event_id, "card_id": payment.card_id, "amount": payment.amount, "account_id": None}
    return words | own | {"event_time": payment.at, "raw": raw}


def _alert(detector: str, expected: oracle.Expected) -> dict[str, Any]:
    words = dict.fromkeys(("release", "settings_digest", "severity", "title", "reason"), "x")
    evidence = {"event_ids": list(expected.evidence), "values": dict(expected.values)}
    about = {"entity": {"type": "card", "id": "x"}, "score": 1.0, "labels": {}, "evidence": evidence}
    times = {"event_time": NOW, "detected_at": NOW}
    return words | about | times | {"alert_id": expected.alert_id, "detector": detector}


def _notification(number: int, alert_id: str) -> dict[str, Any]:
    words = dict.fromkeys(("status", "case_id", "severity", "title", "text"), "x")
    own = {"notification_id": f"n-{number}", "seq": number, "alert_ids": [alert_id], "routes": []}
    return words | own | {"event_time": NOW, "created_at": NOW}
