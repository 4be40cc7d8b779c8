"""Wherever an instance dies, the records of a batch and its offsets are there both, or neither, and once."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer
from lozenge_upstream.streaming.transactional_sink import Sink
from tests.integration.upstream.in_process import POINTS, Crash, CrashingProducer, HangingProducer, without_member
from tests.integration.upstream.upstream_bench import Bench
from tests.streams import RAW_JSON, RELEASE, output

BATCHES: dict[int, list[bytes]] = {number: [b"%d-%d" % (number, n) for n in range(8)] for number in (1, 2, 3)}


class Batches:
    """Batches for the topic of events, of which each ends at ten times its number."""

    def __init__(self, bench: Bench, spark: SparkSession) -> None:
        self.bench, self._spark = bench, spark
        self._raw = bench.topics.prefixed(RAW_JSON)

    def rows(self, number: int) -> DataFrame:
        rows = [(self.bench.topics.events("auth"), n % 4, bytearray(value)) for n, value in enumerate(BATCHES[number])]
        return self._spark.createDataFrame(rows, "topic string, partition int, value binary")

    def write(self, sink: Sink, number: int) -> None:
        sink.commit(self.rows(number), {self._raw: {"0": number * 10}}, CommitMetadata())

    def written(self) -> list[int]:
        """The numbers of the batches that were written; each is complete and there once."""
        values = sorted(record.value for record in self.bench.written(self.bench.topics.events("auth")))
        numbers = [number for number, batch in BATCHES.items() if batch[0] in values]
        assert values == [value for number in numbers for value in BATCHES[number]]
        return numbers

    def position(self) -> int:
        """Where the next query starts; waits for an open transaction of the group."""
        with closing(Position(self.bench.kafka, "upstream", output(self.bench.kafka), RELEASE)) as position:
            return position.read({self._raw: [0]})[self._raw]["0"]


@pytest.fixture
def batches(bench: Bench, spark: SparkSession, kafka: KafkaSettings) -> Batches:
    producer = Producer(kafka.client())  # a position has to be within its topic
    for _ in range(int(bench.ends(bench.topics.prefixed(RAW_JSON))["0"]), 40):
        producer.produce(bench.topics.prefixed(RAW_JSON), b"{}", partition=0)
    assert producer.flush(30) == 0
    return Batches(bench, spark)


@pytest.fixture
def producers(spark: SparkSession, kafka: KafkaSettings) -> Iterator[Any]:
    """Makes producers of one name, which are closed at the end only."""
    name, made = f"upstream-{uuid4()}", []

    def make(kind: type[TransactionalProducer]) -> TransactionalProducer:
        made.append(kind(spark, kafka, name, without_member(spark, kafka)))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_records_and_offsets_both_or_neither(batches: Batches, producers: Any, point: str) -> None:
    crashing: CrashingProducer = producers(CrashingProducer)
    sink = Sink(crashing)
    batches.write(sink, 1)
    crashing.crash_at(point)
    with pytest.raises(Crash, match=point):
        batches.write(sink, 2)
    sink.abort()
    has_sent = point in ("before send_offsets", "before commit")
    if has_sent:
        assert batches.bench.open(), "a dead process aborts nothing"

    following = Sink(producers(TransactionalProducer))
    assert not batches.bench.open(), "the next process of that name ends the transaction of the dead one"
    done = [1, 2] if point == "after commit" else [1]
    assert (batches.written(), batches.position()) == (done, done[-1] * 10)
    if has_sent:
        with pytest.raises(Exception, match=r"ProducerFenced|InvalidProducerEpoch"):
            crashing.late_commit()
    batches.write(following, 3)
    assert (batches.written(), batches.position()) == ([*done, 3], 30)


def test_a_batch_that_hangs_is_aborted_by_another_thread_and_written_later(batches: Batches, producers: Any) -> None:
    hanging: HangingProducer = producers(HangingProducer)
    sink = Sink(hanging)
    batches.write(sink, 1)
    failures: list[Exception] = []

    def write() -> None:
        try:
            batches.write(sink, 2)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    assert hanging.hangs.wait(60)
    assert batches.bench.open()
    sink.abort()
    thread.join(60)
    assert len(failures) == 1, "an aborted batch must not be taken for a written one"
    assert not batches.bench.open(), "readers would wait for a transaction that nobody ends"
    assert (batches.written(), batches.position()) == ([1], 10)
    batches.write(Sink(producers(TransactionalProducer)), 2)
    assert (batches.written(), batches.position()) == ([1, 2], 20)


def test_a_move_commits_offsets_with_their_mark_alone(batches: Batches, producers: Any) -> None:
    since = datetime(2026, 3, 1, 12, tzinfo=UTC)
    sink = Sink(producers(TransactionalProducer))
    raw = batches.bench.topics.prefixed(RAW_JSON)
    sink.move({raw: {"0": 7}}, CommitMetadata(output_ahead=True, ahead_since=since))
    with closing(Position(batches.bench.kafka, "upstream", output(batches.bench.kafka), RELEASE)) as position:
        assert position.read({raw: [0]}) == {raw: {"0": 7}}
        assert position.written_since == since
    assert batches.written() == []
