"""Upstream has the ways out that a detector has: lost, moved and expired offsets are named, accepted and recorded."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lozenge.contracts.dead_letters import RAW_POSITION
from lozenge.contracts.topics import Topic
from lozenge.errors import OffsetsLost
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_deploy.observe.group_lag import lag_of
from lozenge_upstream.streaming.group_position import Position
from tests.deploy.command import lozenge
from tests.integration import clients
from tests.integration.harness import move
from tests.streams import RAW_JSON, RELEASE, every_topic, output


@pytest.fixture
def raw(kafka: KafkaSettings) -> str:
    """A raw topic of two partitions with 300 records in the first, of which upstream has committed 200."""
    ensure_topics(kafka, every_topic(kafka.topics))
    topic = kafka.topics.prefixed(RAW_JSON)
    if not clients.ends(kafka, topic)[0]:
        producer = Producer(kafka.client())
        for number in range(300):
            producer.produce(topic, str(number).encode(), partition=0)
        assert producer.flush(30) == 0
    return topic


def commit(kafka: KafkaSettings, topic: str, offsets: dict[int, int]) -> None:
    """Commits as upstream does."""
    writer, group = (
        TransactionalWriter(kafka, "upstream-test"),
        ConsumerGroup(kafka, "upstream", topic, kafka.partitions),
    )
    writer.fence()
    writer.commit([], group, offsets, CommitMetadata())
    group.close()


def starts(kafka: KafkaSettings, topic: str) -> dict[str, int]:
    """Where upstream resumes in the topic."""
    position = Position(kafka, "upstream", output(kafka), RELEASE)
    try:
        return position.read({topic: range(kafka.partitions)})[topic]
    finally:
        position.close()


def said(kafka: KafkaSettings, folder: Path, *arguments: str) -> Any:
    run = lozenge(*arguments, "-o", "json", cwd=folder, **kafka.variables)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def covered(kafka: KafkaSettings, folder: Path) -> set[tuple[str, int, int]]:
    return {
        (row["kind"], row["from"], row["to"])
        for row in said(kafka, folder, "coverage", "upstream")
        if row["partition"] == 0
    }


def test_raw_records_that_were_deleted_before_they_were_read_are_a_decision_of_a_person(
    kafka: KafkaSettings, raw: str, tmp_path: Path
) -> None:
    folder = tmp_path
    commit(kafka, raw, {0: 150})
    assert starts(kafka, raw)["0"] == 150
    commit(kafka, raw, {0: 200})
    admin = clients.clients(kafka).admin
    admin.delete_records([TopicPartition(raw, 0, 260)])[TopicPartition(raw, 0)].result(10)

    lag = lag_of(kafka, "upstream")
    assert lag is not None
    assert (lag.offsets, lag.lost) == (100, 60)
    [row] = [row for row in said(kafka, folder, "offsets", "upstream") if row["partition"] == 0]
    assert (row["topic"], row["lag"], row["lost"]) == (raw, 100, 60)
    with pytest.raises(OffsetsLost, match="60 records 200-259 were deleted before they were read"):
        starts(kafka, raw)

    wrong = lozenge("offsets", "upstream", "--to", "0:9999", cwd=folder, **kafka.variables)
    assert (wrong.returncode, "0:9999 is not between 260 and 300" in wrong.stderr) == (2, True)
    assert said(kafka, folder, "offsets", "upstream", "--earliest", "--dry-run")[0]["status"] is None
    with pytest.raises(OffsetsLost):
        starts(kafka, raw)
    [done] = said(kafka, folder, "offsets", "upstream", "--earliest")
    assert "0:260" in done["resets"][0]
    assert starts(kafka, raw)["0"] == 260
    assert covered(kafka, tmp_path) == {("processed", 150, 200), ("GAP", 200, 260), ("open", 260, 260)}

    producer = Producer(kafka.client())  # upstream continues to 265, and another tool moves its group
    producer.produce(kafka.topics.dead_letters("upstream"), b"?", partition=0, headers={RAW_POSITION: f"{raw}/0/264"})
    assert producer.flush(30) == 0
    move(kafka, "upstream", {0: 270}, raw)
    assert starts(kafka, raw)["0"] == 270
    assert covered(kafka, tmp_path) >= {("processed", 260, 265), ("GAP", 265, 270), ("open", 270, 270)}


def test_what_waits_behind_an_open_transaction_counts_as_lag_and_is_named(kafka: KafkaSettings) -> None:
    topic, group = kafka.topics.prefixed("BLOCKED"), "blocked"
    ensure_topics(kafka, [Topic(topic, 1)])
    producer = Producer(kafka.client(transactional_id="holds-it-open"))
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    other = Producer(kafka.client())
    for number in range(4):
        other.produce(topic, str(number).encode(), partition=0)
    assert other.flush(30) == 0
    consumer = Consumer(kafka.client(group_id=group, enable_auto_commit=False))
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    recent, found = lag_of(kafka, group), lag_of(kafka, group, held_seconds=0)
    assert recent is not None
    assert (recent.offsets, recent.problem) == (5, None), "a transaction of a moment is no problem"
    assert found is not None
    assert found.offsets == 5
    assert found.problem == f"5 offsets wait behind an open transaction in {topic} 0"
    producer.abort_transaction()
    found = lag_of(kafka, group)
    assert found is not None
    assert (found.offsets, found.problem) == (6, None)
