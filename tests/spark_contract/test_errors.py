"""The texts of errors of Spark and its connector by which a job decides how to recover, or says what to do."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import ArithmeticException, StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.topics import Topic
from lozenge.errors import first_line
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.avro import UNKNOWN_SCHEMA
from lozenge.spark.internals import driver_jvm, errors, python_api
from lozenge.spark.kafka_source import bounded

Plan = Callable[[DataFrame], DataFrame]


def test_a_result_too_large_for_the_driver_names_the_setting(spark: SparkSession) -> None:
    conf = driver_jvm.spark_context(spark).conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", "10k")
    try:
        with pytest.raises(Exception) as caught:
            spark.range(100_000).collect()
    finally:
        conf.set("spark.driver.maxResultSize", before)
    assert errors.is_result_too_large(caught.value)
    assert not errors.is_other_state(caught.value)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda rows: rows.groupBy("v").count(), id="another-key"),
        pytest.param(lambda rows: rows.groupBy("k").agg(F.collect_set("v")), id="another-aggregate"),
        pytest.param(lambda rows: rows.dropDuplicates(["k"]), id="another-operator"),
    ],
)
def test_state_of_another_plan_has_a_known_error_condition(stream: DataFrame, tmp_path: Path, other: Plan) -> None:
    _append(tmp_path)
    _run(stream.groupBy("k").count(), tmp_path)
    _append(tmp_path)
    with pytest.raises(StreamingQueryException) as caught:
        _run(other(stream), tmp_path)
    assert errors.is_other_state(caught.value)


def test_the_text_of_raise_error_is_part_of_what_the_query_raises(stream: DataFrame, tmp_path: Path) -> None:
    _append(tmp_path)
    raised: Column = F.raise_error(F.concat(F.lit(f"{UNKNOWN_SCHEMA}:"), "v"))
    with pytest.raises(StreamingQueryException) as caught:
        _run(stream.select(raised), tmp_path)
    assert f"{UNKNOWN_SCHEMA}:1" in str(caught.value)


def test_only_an_expression_that_is_made_with_call_sites_names_its_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", False)
    with python_api.capture_call_sites():
        named = 1 / F.col("id")
    with pytest.raises(ArithmeticException) as caught:
        spark.range(1).select(named).collect()
    [context] = caught.value.getQueryContext()
    assert Path(__file__).name in context.callSite()
    with pytest.raises(ArithmeticException) as caught:
        spark.range(1).select(1 / F.col("id")).collect()
    assert Path(__file__).name not in str(caught.value)


def test_a_timestamp_beyond_what_the_source_can_read_overflows(spark: SparkSession, kafka: KafkaSettings) -> None:
    topic = f"contract-{uuid4()}"
    ensure_topics(kafka, [Topic(topic, 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})])
    producer = Producer(kafka.client())
    producer.produce(topic, "a", timestamp=2**63 // 1000 + 1)
    assert producer.flush(30) == 0
    with pytest.raises(Exception) as caught:
        bounded(spark, kafka, "contract", topic, {0: (0, 1)}).collect()
    assert errors.is_timestamp_overflow(caught.value)
    assert not errors.are_records_gone(caught.value)


def test_records_that_were_deleted_before_they_were_read_are_gone(spark: SparkSession, kafka: KafkaSettings) -> None:
    topic = f"contract-{uuid4()}"
    ensure_topics(kafka, [Topic(topic, 1)])
    producer = Producer(kafka.client())
    for value in "abc":
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    admin = AdminClient(kafka.client())  # without it nobody would await the answer
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
    deleted.result(30)
    with pytest.raises(Exception) as caught:
        bounded(spark, kafka, "contract", topic, {0: (0, 3)}).collect()
    assert errors.are_records_gone(caught.value)
    assert not errors.is_timestamp_overflow(caught.value)


def _append(folder: Path) -> None:
    folder.joinpath(f"{uuid4()}.json").write_text('{"k": "a", "v": 1}\n')


def _run(rows: DataFrame, folder: Path) -> None:
    def process(batch: DataFrame, number: int) -> None:
        batch.collect()

    writer = rows.writeStream.outputMode("update").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).foreachBatch(process).start().awaitTermination()


def test_what_java_raised_is_named_and_not_the_call(spark: SparkSession) -> None:
    """py4j prints the call, then Java's exception with its stack and causes."""
    with pytest.raises(Exception, match="calling") as raised:
        driver_jvm.java(spark).java.lang.Class.forName("no.such.Thing")
    assert first_line(raised.value) == "java.lang.ClassNotFoundException: no.such.Thing"
