"""One topic on its way into its table, by real Kafka and real Spark."""

import zlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.archive.queries import ArchiveQueries, tables_in
from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import SOURCE_OFFSET, SOURCE_PARTITION
from lozenge.errors import Fenced, OffsetsLost
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.sink.commit_plan import CommitLimits
from tests.integration.harness import committed, event, group_offsets, send, wider_events
from tests.integration.sink.archiving import (
    AT_ONCE,
    declared,
    ends_of,
    proved,
    sharing,
    sink_of,
    spark_reader,
    topics_of,
)

CARDS = [f"card_{number}" for number in range(20)]


@pytest.fixture(autouse=True, scope="module")
def _topics(kafka: KafkaSettings) -> None:
    topics = kafka.topics
    ensure_topics(
        kafka, [*topics.platform_topics(), *topics.detector("large").contracts(), *topics.normaliser("upstream")]
    )


def rows_in(archive: Path, query: str) -> list[dict[str, Any]]:
    with ArchiveQueries(tables_in(archive)) as queries:
        found: list[dict[str, Any]] = queries.read(query).read_all().to_pylist()
        return found


def test_a_table_has_the_values_of_each_event_and_its_coordinates_and_is_proved(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    sink = declared("values")
    send(kafka, [event(n, card=CARDS[n % 20], amount=f"{n}.2500") for n in range(100)])
    topic = topics_of(kafka, sink)["events_auth"]
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        archived = sink_of(topic, sink, tmp_path, shared)
        before = sum(ends_of(kafka, topic).values())
        done = archived.commit(ends_of(kafka, topic), AT_ONCE)
        assert done is not None
        assert (done.offsets, done.rows + done.dead_letters) == (before, before)
        assert archived.lag(ends_of(kafka, topic)) == 0
        assert archived.commit(ends_of(kafka, topic), AT_ONCE) is None
    assert all(each.clean for each in proved(kafka, tmp_path))
    found = rows_in(tmp_path, "SELECT * FROM events_auth WHERE event_id = 'event-7'")[-1]
    assert (found["card_id"], found["amount"], found["raw"]["source"]) == ("card_7", Decimal("7.2500"), "test")
    assert found["bucket"] == zlib.crc32(b"card_7") % 4
    assert found["day"] == datetime.now(UTC).date()
    assert {p: o for p, (o, _) in group_offsets(kafka, sink.app, topic.topic).items()} == ends_of(kafka, topic)


def test_a_record_that_cannot_be_read_is_a_dead_letter_and_the_proof_knows_it(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    sink = declared("poison")
    send(kafka, [event(1), b"no event", event(2), b""])
    topic = topics_of(kafka, sink)["events_auth"]
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        done = sink_of(topic, sink, tmp_path, shared).commit(ends_of(kafka, topic), AT_ONCE)
    assert done is not None
    assert done.dead_letters == 2
    dead = committed(kafka, kafka.topics.dead_letters(sink.app))
    assert [each.value for each in dead] == [b"no event", b""]
    assert all({SOURCE_PARTITION, SOURCE_OFFSET} <= {name for name, _ in each.headers} for each in dead)
    found = proved(kafka, tmp_path)
    assert all(each.clean for each in found)
    assert sum(each.dead_letters for each in found) == 2


def test_records_of_a_schema_that_is_announced_later_are_rows_with_what_the_table_knows(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    sink = declared("wider")
    announce(kafka, [wider_events()])
    send(kafka, [event(7_777, wallet="w")], Codec(wider_events()))
    topic = topics_of(kafka, sink)["events_auth"]
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        sink_of(topic, sink, tmp_path, shared).commit(ends_of(kafka, topic), AT_ONCE)
    assert rows_in(tmp_path, "SELECT card_id FROM events_auth WHERE event_id = 'event-7777'") == [{"card_id": "card_1"}]


def test_alerts_with_nested_values_and_dead_letters_as_they_are_have_tables(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.integration.clients import clients

    sink, now = declared("kinds"), datetime(2026, 3, 1, tzinfo=UTC)
    alert = {
        "alert_id": "a-1",
        "detector": "large",
        "release": "r1",
        "settings_digest": "d",
        "entity": {"type": "card", "id": "card_1"},
        "severity": "high",
        "score": 0.5,
        "title": "t",
        "reason": "r",
        "evidence": {"event_ids": ["e-1", "e-2"], "values": {"amount": "1"}},
        "event_time": now,
        "detected_at": now,
        "labels": {"team": "x"},
    }
    producer = clients(kafka).producer
    producer.produce(kafka.topics.detector("large").alerts, Codec.of("alert").encode(alert), b"card_1", 0)
    producer.produce(kafka.topics.dead_letters("upstream"), b"\xff\x00", None, 1, headers=[("why", b"\xfe")])
    producer.flush(30)
    topics = topics_of(kafka, sink)
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        for view in ("alerts_large", "dead_letters_upstream", "notifications"):
            sink_of(topics[view], sink, tmp_path, shared).commit(ends_of(kafka, topics[view]), AT_ONCE)
    [found] = rows_in(tmp_path, "SELECT * FROM alerts")
    assert found["evidence"] == {"event_ids": ["e-1", "e-2"], "values": [("amount", "1")]}
    assert found["trigger"] is None
    [each] = rows_in(tmp_path, "SELECT * FROM dead_letters")
    assert (each["key"], each["value"], each["headers"]) == (
        None,
        b"\xff\x00",
        [{"key": "why", "value": b"\xfe"}],
    )
    assert rows_in(tmp_path, "SELECT * FROM notifications") == []
    assert all(each.clean for each in proved(kafka, tmp_path))


def test_a_full_commit_leaves_the_rest_for_the_next(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    sink = declared("parts")
    send(kafka, [event(n, card=CARDS[n % 20]) for n in range(60)])
    topic = topics_of(kafka, sink)["events_auth"]
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        archived = sink_of(topic, sink, tmp_path, shared, CommitLimits(60.0, 0))
        assert archived.commit(ends_of(kafka, topic), 0.0) is not None
        assert archived.lag(ends_of(kafka, topic)) > 0
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        sink_of(topic, sink, tmp_path, shared).commit(ends_of(kafka, topic), AT_ONCE)
    assert all(each.clean for each in proved(kafka, tmp_path))


def test_an_earlier_process_is_fenced_by_the_table(kafka: KafkaSettings, spark: SparkSession, tmp_path: Path) -> None:
    sink = declared("fenced")
    send(kafka, [event(1)])
    topic = topics_of(kafka, sink)["events_auth"]
    reader = spark_reader(spark, kafka, sink)
    with sharing(kafka, sink, reader) as earlier, sharing(kafka, sink, reader) as later:
        zombie, successor = (sink_of(topic, sink, tmp_path, shared) for shared in (earlier, later))
        assert successor.commit(ends_of(kafka, topic), AT_ONCE) is not None
        with pytest.raises(Fenced, match="another writer has archived"):
            zombie.commit(ends_of(kafka, topic), AT_ONCE)
    assert all(each.clean for each in proved(kafka, tmp_path))


def test_a_topic_that_ends_before_its_table_is_refused(
    kafka: KafkaSettings, spark: SparkSession, tmp_path: Path
) -> None:
    sink = declared("shorter")
    topic = topics_of(kafka, sink)["feedback"]
    with sharing(kafka, sink, spark_reader(spark, kafka, sink)) as shared:
        archived = sink_of(topic, sink, tmp_path, shared)
        archived.table.append(topic.columns.empty_table(), {}, {0: 10_000})
        with pytest.raises(OffsetsLost, match="partition 0 is archived to 10000"):
            sink_of(topic, sink, tmp_path, shared)
