"""What is assumed about Spark's Kafka connector, and about the files that a query writes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.checkpoint import Checkpoint, planned_ends
from lozenge.spark.internals import kafka_connector, queries
from lozenge.spark.kafka_sink import COLUMNS, UNBATCHED, SinkProducer, discarding, realtime_writer
from lozenge.spark.kafka_source import bounded, stream
from lozenge.spark.live_lag import LiveLag
from lozenge.spark.query_progress import NewProgress, end_offsets
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.toolchain import spark_home
from lozenge.toolchain.jars import jars
from tests.integration.harness import wait_for
from tests.spark_contract.class_files import ClassPath

APP = "contract"


@pytest.fixture
def topic(kafka: KafkaSettings) -> str:
    """A topic of one partition."""
    topic = f"contract-{uuid4()}"
    ensure_topics(kafka, [Topic(topic, 1)])
    return topic


def send(kafka: KafkaSettings, topic: str, *values: str) -> None:
    producer = Producer(kafka.client())
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def text(records: DataFrame) -> DataFrame:
    return records.select(F.col("value").cast("string").alias("text"))


# exactly once


def test_tasks_write_through_the_producer_that_the_driver_holds(
    spark: SparkSession, kafka: KafkaSettings, topic: str
) -> None:
    """The base of upstream's transactions: another producer with this transactional id would refuse to send."""
    name = f"contract-{uuid4()}"
    sink = SinkProducer(spark, name, kafka.spark() | UNBATCHED | {"kafka.transactional.id": name})
    rows = spark.createDataFrame([(topic, 0, "a"), (topic, 0, "b")], "topic string, partition int, value string")
    sink.java.initTransactions()
    for end in (sink.java.abortTransaction, sink.java.commitTransaction):
        sink.java.beginTransaction()
        rows.write.format("kafka").options(**sink.options).save()
        end()
    sink.close()
    found = text(bounded(spark, kafka, APP, topic, {0: (0, 6)})).collect()  # with the transactions' two markers
    assert sorted(row["text"] for row in found) == ["a", "b"]


def test_the_pool_gives_one_producer_for_equal_parameters(spark: SparkSession, kafka: KafkaSettings) -> None:
    serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
    params = {"bootstrap.servers": kafka.bootstrap, "key.serializer": serializer, "value.serializer": serializer}
    first, second = kafka_connector.PooledProducer(spark, params), kafka_connector.PooledProducer(spark, params)
    other = kafka_connector.PooledProducer(spark, params | {"linger.ms": "7"})
    assert first.java.equals(second.java)
    assert not first.java.equals(other.java)
    for pooled in (first, second, other):
        pooled.release()


# the files of a checkpoint


def test_spark_writes_where_a_batch_ends_before_it_runs_the_batch(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    send(kafka, topic, "a", "b", "c")
    planned = []
    rows = stream(spark, kafka, APP, topic, {0: 0}, 2)
    run(rows, tmp_path, lambda batch, number: planned.append(planned_ends(tmp_path, number)))
    assert planned == [{topic: {"0": 2}}, {topic: {"0": 3}}]
    assert planned_ends(tmp_path, 2) is None


def test_a_batch_whose_plan_is_removed_is_planned_again(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    send(kafka, topic, "a", "b", "c")
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()

    def fail(batch: DataFrame, number: int) -> None:
        raise ValueError

    with pytest.raises(StreamingQueryException):
        run(stream(spark, kafka, APP, topic, {0: 0}, 3), checkpoint.folder, fail)
    assert checkpoint.planned(0) == {0: 3}
    checkpoint.forget(0)
    ends: list[dict[int, int] | None] = []
    run(
        stream(spark, kafka, APP, topic, {0: 0}, 1),
        checkpoint.folder,
        lambda batch, number: ends.append(checkpoint.planned(number)),
    )
    assert ends == [{0: 1}, {0: 2}, {0: 3}]


def test_a_query_whose_last_batches_are_forgotten_resumes_with_the_state_of_then(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    send(kafka, topic, "a", "a", "a")
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.renew()
    counts: list[tuple[int, int]] = []

    def count(batch: DataFrame, number: int) -> None:
        counts.extend((number, row["count"]) for row in batch.collect())

    rows = text(stream(spark, kafka, APP, topic, {0: 0}, 1)).groupBy("text").count()
    run(rows, checkpoint.folder, count, mode="update")
    checkpoint.back_to(0)
    assert checkpoint.last_planned() == 0
    run(rows, checkpoint.folder, count, mode="update")
    assert counts == [(0, 1), (1, 2), (2, 3), (1, 2), (2, 3)]


def run(rows: DataFrame, folder: Path, process: object, *, mode: str = "append") -> None:
    writer = rows.writeStream.option("checkpointLocation", str(folder)).outputMode(mode).trigger(availableNow=True)
    writer.foreachBatch(process).start().awaitTermination()  # type: ignore[arg-type]


# Real-Time Mode


@contextmanager
def in_real_time(
    spark: SparkSession, kafka: KafkaSettings, topic: str, folder: Path, duration: str
) -> Iterator[StreamingQuery]:
    """A query that copies the topic to another one."""
    ensure_topics(kafka, [Topic(f"{topic}-copy", 1)])
    rows = stream(spark, kafka, APP, topic, {0: 0}, None).withColumn("topic", F.lit(f"{topic}-copy"))
    sink = SinkProducer(spark, APP, kafka.spark() | UNBATCHED)
    writer = realtime_writer(rows.select(*COLUMNS), sink.options, duration)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        yield query
    finally:
        query.stop()
        sink.close()


def test_the_batch_duration_of_a_running_query_is_in_its_relations(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    assert queries.can_change_batch_duration(spark)
    with in_real_time(spark, kafka, topic, tmp_path, "1 second") as query:
        new = NewProgress(query)
        wait_for(lambda: any(new.take()), "the end of a short batch")
        assert _batch_durations(query) == [1.0]
        assert queries.change_batch_duration(spark, query, "3 seconds")
        assert _batch_durations(query) == [3.0]
        wait_for(lambda: any(p.batchDuration >= 2900 for p in new.take()), "the end of a longer batch")


def test_short_batches_become_long_ones_while_the_query_runs(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    duration = RealtimeBatchDuration(spark, short=1)
    with in_real_time(spark, kafka, topic, tmp_path, duration.begin(3600)) as query:
        new = NewProgress(query)
        wait_for(lambda: any(new.take()), "the end of a short batch")
        assert _batch_durations(query) == [2.0]
        duration.ended(query)
        assert _batch_durations(query) == [3600.0]
        assert not duration.warming_up


def test_consumers_show_their_fetches_and_their_lag_while_a_batch_lasts(
    spark: SparkSession, kafka: KafkaSettings, topic: str, tmp_path: Path
) -> None:
    live = LiveLag(spark, APP, {(topic, 0): 0})
    send(kafka, topic, "a", "b", "c")
    with in_real_time(spark, kafka, topic, tmp_path, "1 hour"):
        read = 0

        def caught_up() -> bool:
            nonlocal read
            progress = live.poll({(topic, 0): 3})
            read += progress.read
            return progress.lag == 0

        wait_for(caught_up, "the lag to be gone")
        assert read == 3


def test_the_sink_that_discards_rows_runs_in_real_time_mode(
    spark: SparkSession, kafka: KafkaSettings, topic: str
) -> None:
    send(kafka, topic, "a", "b")
    with discarding(stream(spark, kafka, APP, topic, {0: 0}, None), "1 second") as query:
        new = NewProgress(query)
        wait_for(lambda: any(end_offsets(progress) == {topic: {"0": 2}} for progress in new.take()), "a batch's end")


# the jars


def test_every_member_that_the_connectors_classes_refer_to_is_there() -> None:
    """Its jars are of another release than Spark, so nobody else has linked the two. Kafka's client is among them."""
    connector = jars("connector")
    with closing(ClassPath([*connector, *sorted((spark_home() / "jars").glob("*.jar"))])) as path:
        missing = {
            f"{jar.name}: {found.name} uses {owner}.{name}{descriptor}"
            for jar in connector
            if jar.name.startswith("spark-")
            for found in path.of(jar)
            for owner, (name, descriptor) in found.references
            if not path.defines(owner, (name, descriptor))
        }
    assert not missing, "\n".join(sorted(missing))


def _batch_durations(query: StreamingQuery) -> list[float]:
    """Seconds that a batch of a query in Real-Time Mode lasts, as each source has it."""
    return [source.realTimeModeDuration().get() / 1000 for source in queries.source_relations(query)]
