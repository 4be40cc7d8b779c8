"""Stream and range have the same events: without the excluded records, by every schema that is known."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import Schema
from lozenge.errors import DecodeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.query import event_reader
from lozenge.job.query.event_reader import EventReader
from lozenge.spark import kafka_source
from lozenge.spark.internals import plans
from tests.alert_streams import LARGE, alert
from tests.merged_streams import BY_CARD, SIGN_IN, sign_in
from tests.shared.job.commit.scripted import KAFKA, LIVE, declared
from tests.shared.job.query.conftest import CODEC, event, raw
from tests.streams import AUTH

GOOD = CODEC.encode(event(1))
RECORDS = [(0, 0, GOOD), (0, 1, b"text"), (1, 0, GOOD), (1, 1, GOOD + b"more")]
EVERYTHING = {0: (0, 2), 1: (0, 2)}


class Topic:
    """The input in memory; `asked` are the streams that were requested: offsets and the limit of a batch."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._spark, self._folder = spark, folder
        self.identity, self.records = LIVE, RECORDS
        self.asked: list[tuple[dict[int, int], int | None]] = []
        patch.setattr(kafka_source, "bounded", self._bounded)
        patch.setattr(kafka_source, "stream", self._stream)

    def reader(self, kind: str = "rule") -> EventReader:
        return EventReader(self.identity, declared(kind), KAFKA, self._spark)

    def _bounded(self, spark: object, kafka: object, app: str, topic: str, ranges: object) -> DataFrame:
        assert (app, topic) == (self.identity.app, self.identity.input)
        return raw(self._spark, self.records)

    def _stream(self, _: object, kafka: object, app: str, topic: str, start: Mapping[int, int], most: int) -> DataFrame:
        self.asked.append((dict(start), most))
        return self._spark.readStream.schema(kafka_source.RECORDS).parquet(str(self._folder))


@pytest.fixture
def topic(query_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(query_spark, tmp_path, monkeypatch)


def test_malformed_records_are_excluded_by_one_read_and_the_good_ones_stay(topic: Topic) -> None:
    reader = topic.reader()
    found = reader.exclude_malformed(EVERYTHING)
    assert {(f.position, f.stage) for f in found} == {((0, 1), "decode"), ((1, 1), "decode")}
    assert all(isinstance(f.error, DecodeError) for f in found)
    assert {"no Confluent header" in str(f.error) for f in found if f.partition == 0} == {True}
    assert reader.bounded(EVERYTHING).count() == 2
    assert reader.exclude_malformed(EVERYTHING) == [], "they are found once"
    assert len(reader.excluded) == 2


def test_an_excluded_record_is_in_no_range(topic: Topic) -> None:
    reader = topic.reader()
    reader.excluded += [FailedRecord(p, o, DecodeError("no")) for p, o in ((0, 0), (0, 1), (1, 1))]
    assert [row.event_id for row in reader.bounded(EVERYTHING).collect()] == ["event-1"]


def test_a_stream_without_lateness_has_one_source_with_the_whole_limit(topic: Topic) -> None:
    frame = topic.reader().stream({0: 5, 1: 7}, 100)
    assert topic.asked == [({0: 5, 1: 7}, 100)]
    assert frame.isStreaming
    assert "EventTimeWatermark" not in {node.name for node in plans.logical_plan(frame).walk()}


def test_a_stream_with_lateness_reads_each_partition_by_itself_with_its_share(topic: Topic) -> None:
    frame = topic.reader("aggregate").stream({1: 7, 0: 5, 2: 9}, 100)
    assert topic.asked == [({0: 5}, 33), ({1: 7}, 33), ({2: 9}, 33)]
    assert "EventTimeWatermark" in {node.name for node in plans.logical_plan(frame).walk()}
    topic.reader("aggregate").stream({0: 0, 1: 0}, 1)
    assert [most for _, most in topic.asked[3:]] == [1, 1], "a batch has one offset at least"
    topic.reader("aggregate").stream({0: 0}, None)
    assert topic.asked[-1] == ({0: 0}, None), "Real-Time Mode has no limit"


def test_a_schema_is_known_once_it_was_learned(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = Schema(902, AUTH.schema_name, 9, AUTH.event_schema.text)
    monkeypatch.setattr(event_reader, "announced", lambda kafka, own: [announced])
    reader = topic.reader()
    assert 902 in reader.learn()
    assert AUTH.event_schema.id in reader.learn(), "the packaged ones stay"


def test_a_merged_topic_has_events_of_both_streams_each_with_its_name_and_null_for_the_other(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "announced", lambda kafka, own: [])
    attempt = sign_in(1, card_id="card_1")
    lacking = sign_in(2, card_id=None)
    values = [GOOD, *map(Codec(SIGN_IN.event_schema).encode, (attempt, lacking)), b"text"]
    topic.identity = replace(LIVE, stream=BY_CARD)
    topic.records = [(1, offset, value) for offset, value in enumerate(values)]
    reader = topic.reader()
    assert topic.identity.input == "pay.merged.by-card.v1"
    assert [(found.position, found.stage) for found in reader.exclude_malformed({1: (0, 4)})] == [((1, 3), "decode")]
    payment, other = reader.bounded({1: (0, 4)}).orderBy("_input.offset").collect()
    assert payment.asDict().keys() == {"event_id", "event_time", *(f.name for f in BY_CARD.fields), "raw", "_input"}
    assert (payment.stream, payment.amount, payment.attempts, payment.device) == ("auth", 10, None, None)
    assert (other.stream, other.amount, other.attempts, other.result) == ("sign_in", None, 1, "failed")
    assert (other.device.model, other.device.kind, other.country) == ("x", "phone", "DE")
    assert (other.event_id, other._input.key, other._input.offset) == ("sign-in-1", "card_1", 1)


def test_events_of_a_stream_that_others_merge_are_skipped_from_the_start_and_once_they_are_announced(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    third, fourth = (Schema(id, f"event.{id}", 1, SIGN_IN.event_schema.text) for id in (903, 904))
    known = [third]
    monkeypatch.setattr(event_reader, "announced", lambda kafka, own: list(known))
    topic.identity = replace(LIVE, stream=BY_CARD)
    topic.records = [(1, 0, GOOD), *((1, n, Codec(each).encode(sign_in(n))) for n, each in ((1, third), (2, fourth)))]
    reader = topic.reader()
    with pytest.raises(Exception, match="LOZENGE_UNKNOWN_SCHEMA_ID:904"):
        reader.bounded({1: (0, 3)}).collect()
    known.append(fourth)
    assert reader.learn() == {AUTH.event_schema.id, SIGN_IN.event_schema.id, 903, 904}
    assert [row.event_id for row in reader.bounded({1: (0, 3)}).collect()] == ["event-1"]
    assert reader.exclude_malformed({1: (0, 3)}) == []


def test_alerts_are_read_by_every_version_that_is_known_and_a_later_one_once_it_is_announced(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = Codec.of("alert")
    later = Schema(905, "alert", 3, codec.schema.text)
    known: list[Schema] = []
    monkeypatch.setattr(event_reader, "announced", lambda kafka, own: list(known))
    topic.identity = replace(LIVE, stream=LARGE)
    values = [codec.encode(alert(1)), Codec(later).encode(alert(2)), b"text"]
    topic.records = [(1, offset, value) for offset, value in enumerate(values[:2])]
    reader = topic.reader()
    assert topic.identity.input == "pay.alerts.large_amount.v1"
    with pytest.raises(Exception, match="LOZENGE_UNKNOWN_SCHEMA_ID:905"):
        reader.bounded({1: (0, 2)}).collect()
    known += [later, AUTH.event_schema]
    assert reader.learn() == {schema.id for schema in LARGE.schemas} | {905}
    assert [row.event_id for row in reader.bounded({1: (0, 2)}).collect()] == ["alert-1", "alert-2"]
    topic.records = [(1, offset, value) for offset, value in enumerate(values)]
    assert [found.position for found in reader.exclude_malformed({1: (0, 3)})] == [(1, 2)]
