"""Spark with the pinned jars: they link against this pyspark, and talk to a real broker."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from lozenge.spark.session import spark_session
from tests.brokers import Broker

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


def test_the_kafka_sink_and_source_carry_avro(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    topic = "test-session"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(30)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    records = spark.range(100).select(
        F.col("id").cast("string").alias("key"), to_avro(F.struct("id"), SCHEMA).alias("value")
    )
    records.write.format("kafka").options(**options).option("topic", topic).save()

    decoded = from_avro("value", SCHEMA, {"mode": "PERMISSIVE"}).alias("r")
    stream = spark.readStream.format("kafka").options(**options).load().select(decoded).select("r.id")
    seen: list[int] = []
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: seen.extend(row.id for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(seen) == list(range(100))


def test_an_aggregate_keeps_its_state_in_rocksdb(spark: SparkSession, tmp_path: Path) -> None:
    tmp_path.joinpath("in").mkdir()
    tmp_path.joinpath("in", "1").write_text("a\nb\na\n")
    counts = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count()
    seen: dict[str, int] = {}
    query = (
        counts.writeStream.foreachBatch(lambda batch, _: seen.update(dict(batch.collect())))
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert seen == {"a": 2, "b": 1}


def test_time_is_utc_and_arithmetic_strict(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_a_session_leaves_nothing_in_the_working_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spark.sql("SHOW TABLES").collect()
    spark.range(1).createOrReplaceTempView("v")
    assert not list(tmp_path.iterdir())
    assert not [
        name
        for name in ("spark-warehouse", "metastore_db", "derby.log")
        if Path(__file__).parents[3].joinpath(name).exists()
    ]


def test_a_process_has_one_session(spark: SparkSession) -> None:
    assert spark_session("another").sparkContext.applicationId == spark.sparkContext.applicationId


SILENT = """
from lozenge.spark import jvm_watch
from lozenge.spark.session import spark_session
jvm_watch.START_SECONDS = %s
spark_session("silent", conf={"spark.driver.extraJavaOptions": "%s"})
"""


@pytest.mark.parametrize(
    ("seconds", "options", "words"),
    [
        (0.5, "-XX:+UnlockDiagnosticVMOptions -XX:+PauseAtStartup", "has not named its port within 0.5 s"),
        (60, "-Xms9g", "has ended before it named its port"),
    ],
)
def test_a_jvm_that_does_not_start_is_an_error_not_a_wait(
    seconds: float, options: str, words: str, tmp_path: Path
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SILENT % (seconds, options)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 1
    assert "SparkGone" in run.stderr
    assert words in run.stderr
    assert not [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(tmp_path)]
