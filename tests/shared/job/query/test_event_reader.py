"""Stream and range have the same events: without the excluded records, by every schema that is known."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.schemas import Schema
from lozenge.errors import DecodeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.query import event_reader
from lozenge.job.query.event_reader import EventReader
from lozenge.spark import kafka_source
from lozenge.spark.internals import plans
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
        self.asked: list[tuple[dict[int, int], int | None]] = []
        patch.setattr(kafka_source, "bounded", self._bounded)
        patch.setattr(kafka_source, "stream", self._stream)

    def reader(self, kind: str = "rule") -> EventReader:
        return EventReader(LIVE, declared(kind), KAFKA, self._spark)

    def _bounded(self, spark: object, kafka: object, app: str, topic: str, ranges: object) -> DataFrame:
        assert (app, topic) == (LIVE.app, LIVE.input)
        return raw(self._spark, RECORDS)

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
    monkeypatch.setattr(event_reader, "learn", lambda kafka, name: [announced])
    reader = topic.reader()
    assert 902 in reader.learn()
    assert AUTH.event_schema.id in reader.learn(), "the packaged ones stay"
