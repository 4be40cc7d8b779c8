"""The producer and the command, with librdkafka's in-process mock cluster (no JVM)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge.errors import TopicError
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.feed import ISO, Generator
from lozenge_deploy.demo.feed import __main__ as command
from lozenge_deploy.demo.feed.formats import RAW_LOGIN
from lozenge_deploy.demo.feed.producer import RecordProducer
from tests.streams import RAW_ISO, RAW_JSON

TOPICS = Topics()

NOW = datetime(2026, 11, 20, 19, tzinfo=UTC)


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a mock cluster with both raw topics of payments."""
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    for topic in map(TOPICS.prefixed, (RAW_JSON, RAW_ISO)):
        owner.list_topics(topic, timeout=5)  # asking creates it
    host = next(iter(owner.list_topics(timeout=5).brokers.values()))
    yield f"{host.host}:{host.port}"
    owner.flush(0)


def count(broker: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "count"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=5)[1] for n in range(TOPICS.partitions)]
    consumer.close()
    return sum(ends)


def read_all(broker: str, topic: str) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test", "enable.auto.commit": False})
    parts = [TopicPartition(topic, n) for n in range(TOPICS.partitions)]
    left = sum(consumer.get_watermark_offsets(part, timeout=5)[1] for part in parts)
    consumer.assign([TopicPartition(part.topic, part.partition, 0) for part in parts])
    messages: list[Message] = []
    deadline = time.monotonic() + 10
    while len(messages) < left:
        assert time.monotonic() < deadline, f"only {len(messages)} of {left} records came"
        messages += consumer.consume(left - len(messages), timeout=0.2)
    consumer.close()
    return messages


def feed_command(broker: str, summary: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "lozenge_deploy.demo.feed", "--bootstrap", broker, "--summary", str(summary)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True)


def test_everything_arrives_in_order_in_the_partition_of_its_key(broker: str) -> None:
    feed = Generator(NOW - timedelta(days=9), malformed_rate=0.05)
    raws = list(feed.past(NOW, 5000))
    sender = RecordProducer(KafkaSettings(bootstrap=broker), [RAW_JSON], stopped=lambda: False)
    began = time.time()
    sender.send(raws)
    sender.close()
    messages = read_all(broker, TOPICS.prefixed(RAW_JSON))
    assert sender.failed == 0
    assert all(m.partition() == partition_of(m.key() or b"", TOPICS.partitions) for m in messages)
    assert all(m.timestamp()[1] / 1000 > began - 1 for m in messages), "the Kafka timestamp is the time of sending"
    for n in range(TOPICS.partitions):
        sent = [raw.value for raw in raws if partition_of(raw.key, TOPICS.partitions) == n]
        assert [m.value() or b"" for m in messages if m.partition() == n] == sent


def test_a_stop_ends_the_stream_and_loses_no_record_that_was_taken(broker: str) -> None:
    feed = Generator(NOW - timedelta(days=9))
    sender = RecordProducer(KafkaSettings(bootstrap=broker), [RAW_JSON], stopped=lambda: feed.written.sent >= 700)
    sender.send(feed.past(NOW, 5000))
    sender.close()
    assert len(read_all(broker, TOPICS.prefixed(RAW_JSON))) == feed.written.sent == 700


def test_a_missing_topic_is_refused_before_anything_is_sent(broker: str) -> None:
    with pytest.raises(TopicError, match="AUTH-OTHER does not exist"):
        RecordProducer(KafkaSettings(bootstrap=broker), ["AUTH-OTHER"], stopped=lambda: False)


def test_the_command_sends_history_and_live_records_and_summarises_its_cases(broker: str, tmp_path: Path) -> None:
    summary = tmp_path / "feed.json"
    with feed_command(broker, summary, "--count", "3000", "--rate", "400", "--for", "0.5s", "--format", "iso") as feed:
        _, errors = feed.communicate(timeout=30)
    assert feed.returncode == 0, errors
    said = json.loads(summary.read_text())
    messages = read_all(broker, TOPICS.prefixed(RAW_ISO))
    assert (said["topic"], said["past"], said["failed"], said["sent"]) == (
        TOPICS.prefixed(RAW_ISO),
        3000,
        0,
        len(messages),
    )
    sent = {json.loads(m.value() or b"{}").get("de37") for m in messages if _is_object(m)}
    assert sent.issuperset(txn_id for case in said["cases"] for txn_id in case["txn_ids"])


def test_logins_go_to_their_own_topic_and_are_counted_apart(broker: str, tmp_path: Path) -> None:
    summary = tmp_path / "feed.json"
    Producer({"bootstrap.servers": broker}).list_topics(TOPICS.prefixed(RAW_LOGIN), timeout=5)
    with feed_command(broker, summary, "--past-days", "9", "--count", "3000", "--for", "0s") as feed:
        _, errors = feed.communicate(timeout=30)
    assert feed.returncode == 0, errors
    said = json.loads(summary.read_text())
    assert said["logins"] == count(broker, TOPICS.prefixed(RAW_LOGIN)) > 100
    assert said["sent"] == count(broker, TOPICS.prefixed(RAW_JSON))
    assert said["past"] == 3000 <= said["logins"] + said["sent"]


def test_logins_belong_to_payments_in_json(tmp_path: Path) -> None:
    with feed_command("127.0.0.1:1", tmp_path / "feed.json", "--logins", "--format", "iso") as feed:
        _, errors = feed.communicate(timeout=30)
    assert (feed.returncode, errors.startswith("reading --logins: payments in ISO 8583")) == (2, True)
    with pytest.raises(ValueError, match="AUTH-ISO name no account"):
        Generator(NOW, form=ISO, logins=True)


def test_a_signal_ends_the_command_with_everything_sent_and_a_summary(broker: str, tmp_path: Path) -> None:
    summary = tmp_path / "feed.json"
    with feed_command(broker, summary, "--count", "1000", "--rate", "500", "--case-every", "0.2") as feed:
        assert feed.stderr is not None
        assert "1000 records" in feed.stderr.readline()
        deadline = time.monotonic() + 30
        while count(broker, TOPICS.prefixed(RAW_JSON)) <= 1200:
            assert time.monotonic() < deadline, "no live records came"
            time.sleep(0.05)
        feed.send_signal(signal.SIGTERM)
        assert feed.wait(timeout=10) == 0
    said = json.loads(summary.read_text())
    assert said["sent"] == len(read_all(broker, TOPICS.prefixed(RAW_JSON))) > 1200
    assert any(len(case["txn_ids"]) > 12 for case in said["cases"]), "the burst that had begun was completed"


def test_without_a_broker_the_command_fails_and_still_writes_its_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(topic_admin.partitions, "__kwdefaults__", {"timeout": 0.5})
    monkeypatch.setattr(command, "StopSignal", lambda: lambda: False)
    with pytest.raises(typer.Exit) as ended:
        command.run(bootstrap="127.0.0.1:1", summary=tmp_path / "feed.json")
    assert ended.value.exit_code == 3
    assert "no Kafka broker answers at 127.0.0.1:1" in capsys.readouterr().err
    assert json.loads((tmp_path / "feed.json").read_text())["sent"] == 0


def _is_object(message: Message) -> bool:
    try:
        return isinstance(json.loads(message.value() or b""), dict)
    except ValueError:
        return False
