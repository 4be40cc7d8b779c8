"""A client of a host, as a process: `python -m tests.integration.host.client_program FOLDER NAME WORK [ARGUMENT]`.

It prints a line of JSON once its work is under way, and then with each look at it.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.host.client import SharedJvm
from lozenge.host.cost import SharedMeter
from lozenge.spark.internals.driver_jvm import java, spark_context
from lozenge.spark.session_provider import SessionRequest


def stream(spark: SparkSession, _: str) -> Iterator[object]:
    """The number of batches that a streaming query has called back for."""
    batches = []

    def collect(frame: DataFrame, number: int) -> None:
        batches.append(frame.toArrow().num_rows)

    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    writer = rate.writeStream.foreachBatch(collect).trigger(processingTime="100 milliseconds")
    query = writer.queryName("batches").option("checkpointLocation", tempfile.mkdtemp()).start()
    while True:
        if not query.isActive:
            raise RuntimeError(str(query.exception()))
        if batches:
            yield len(batches)
        time.sleep(0.1)


def files(spark: SparkSession, folder: str) -> Iterator[object]:
    """A query without a call into Python, which writes files."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    writer = rate.writeStream.format("json").trigger(processingTime="100 milliseconds")
    writer.option("checkpointLocation", f"{folder}/checkpoint").option("path", f"{folder}/out").start()
    while True:
        yield len(list(Path(folder, "out").glob("*.json")))
        time.sleep(0.1)


def settings(spark: SparkSession, value: str) -> Iterator[object]:
    """What another session has set or made is not there; the local time is UTC."""
    found = [spark.conf.get("spark.sql.shuffle.partitions"), spark.catalog.tableExists("mine")]
    spark.conf.set("spark.sql.shuffle.partitions", value)
    spark.range(int(value)).createOrReplaceTempView("mine")
    yield [*found, spark.table("mine").count(), time.tzname[0]]
    time.sleep(600)


def function(spark: SparkSession, path: str) -> Iterator[object]:
    """A function in a Python worker: what it sees of its client and of `path`, and the process that it runs in."""

    @F.udf("string")
    def seen(number: int) -> str:
        return json.dumps([os.getpid(), os.environ["LOZENGE_HOST_CLIENT"], path in sys.path])

    while True:
        yield json.loads(spark.range(1).select(seen("id")).collect()[0][0])
        time.sleep(0.1)


def cost(spark: SparkSession, _: str) -> Iterator[object]:
    """Processor seconds and memory that the meter finds, and the memory of this process: before and after some work."""
    meter = SharedMeter(spark)

    @F.udf("long")
    def busy(number: int) -> int:
        end = time.process_time() + 1
        while time.process_time() < end:
            number += 1
        return number

    for _round in range(2):
        found = meter.read()
        yield [found.cpu_seconds, found.memory_bytes, psutil.Process().memory_info().rss]
        spark.range(1).select(busy("id")).collect()


def result(spark: SparkSession, limit: str) -> Iterator[object]:
    """The limit of the host's results, and what becomes of a larger one; it is lowered to `limit` meanwhile."""
    conf, name = spark_context(spark).conf(), "spark.driver.maxResultSize"
    before = conf.get(name)
    conf.set(name, limit)
    try:
        spark.range(100_000).toArrow()
        yield [before, "collected"]
    except Exception as error:
        yield [before, str(error)]
    finally:
        conf.set(name, before)


def stop(spark: SparkSession, _: str) -> Iterator[object]:
    """What its author may call, and what it does to this process alone."""
    spark.stop()
    spark.sparkContext.stop()
    yield "stopped"


def sleep(spark: SparkSession, _: str) -> Iterator[object]:
    """A job that takes minutes, until it is interrupted."""
    yield "begins"
    spark.range(2).select(F.expr("reflect('java.lang.Thread', 'sleep', 600000L)")).collect()


def logs(spark: SparkSession, word: str) -> Iterator[object]:
    """Lines of the JVM with this word: by calls, in a query, and in a task, of which Spark says that a header is odd.

    A task that fails has no lines.
    """
    logger = java(spark).org.apache.logging.log4j.LogManager.getLogger("client")
    logger.error(f"{word} by call")
    network = java(spark).org.apache.logging.log4j.LogManager.getLogger("org.apache.kafka.clients.NetworkClient")
    network.warn(f"[Producer clientId=producer-1] {word} without a broker")
    batches = spark.readStream.format("rate").load().writeStream.trigger(processingTime="100 milliseconds")
    query = batches.foreachBatch(lambda *_: logger.error(f"{word} in query")).start()
    while query.lastProgress is None:
        time.sleep(0.1)
    query.stop()
    table = Path(tempfile.mkdtemp(), "table.csv")
    table.write_text(f"{word}\n1\n")
    spark.read.csv(str(table), "other int", header=True).collect()
    try:
        spark.range(1).select(F.expr(f"raise_error('{word} in task')")).collect()
    except PySparkException:
        yield "failed"


def main(folder: str, name: str, work: str, argument: str = "") -> None:
    spark = SharedJvm(Path(folder)).start(SessionRequest(name, 2, 512))
    for found in globals()[work](spark, argument):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
