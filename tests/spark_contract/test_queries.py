"""What is assumed about a running query in micro-batches."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge.spark.internals import driver_jvm, queries
from lozenge.spark.internals.gateways import listeners
from lozenge.spark.query_progress import NewProgress
from tests.integration.harness import wait_for


@contextmanager
def blocked(stream: DataFrame, folder: Path) -> Iterator[tuple[StreamingQuery, threading.Event]]:
    """A query that is in its first batch until the event is set."""
    folder.joinpath("1.json").write_text('{"k": "a", "v": 1}\n')
    entered, go = threading.Event(), threading.Event()

    def process(batch: DataFrame, number: int) -> None:
        entered.set()
        assert go.wait(60)

    writer = stream.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime="1 hour")
    query = writer.foreachBatch(process).start()
    try:
        assert entered.wait(60)
        yield query, go
    finally:
        go.set()
        query.stop()


def test_a_flag_says_that_a_trigger_is_active(stream: DataFrame, tmp_path: Path) -> None:
    with blocked(stream, tmp_path) as (query, go):
        assert queries.in_trigger(query)
        go.set()
        wait_for(lambda: not queries.in_trigger(query), "the end of the trigger")


def test_the_status_of_a_query_between_batches_begins_with_waiting(stream: DataFrame, tmp_path: Path) -> None:
    with blocked(stream, tmp_path) as (query, go):
        assert not queries.is_waiting(query)
        go.set()
        wait_for(lambda: queries.is_waiting(query), "the query to wait")


def test_the_java_query_offers_the_time_of_its_newest_trigger(stream: DataFrame, tmp_path: Path) -> None:
    with blocked(stream, tmp_path) as (query, go):
        new = NewProgress(query)
        assert queries.newest_progress(query) == ""
        assert list(new.take()) == []
        go.set()
        wait_for(lambda: queries.newest_progress(query) != "", "the first progress")
        newest = query.lastProgress
        assert newest is not None
        assert queries.newest_progress(query) == newest["timestamp"]
        assert [progress.timestamp for progress in new.take()] == [newest["timestamp"]]
        assert list(new.take()) == []


def test_pools_that_spark_starts_at_once_are_small(spark: SparkSession, stream: DataFrame, tmp_path: Path) -> None:
    with blocked(stream, tmp_path):
        threads = [thread.getName() for thread in driver_jvm.java(spark).java.lang.Thread.getAllStackTraces().keySet()]
    for pool in ("map-output-dispatcher", "streaming-shuffle-location-dispatcher"):
        assert len([name for name in threads if name.startswith(pool)]) == 2, threads


def test_nothing_of_a_query_with_state_stays_in_the_context(
    stream: DataFrame, spark: SparkSession, tmp_path: Path
) -> None:
    def started(number: int) -> StreamingQuery:
        writer = stream.groupBy("k").count().writeStream.format("noop").outputMode("update")
        return writer.option("checkpointLocation", f"{tmp_path}/checkpoint-{number}").start()

    tmp_path.joinpath("1.json").write_text('{"k": "a", "v": 1}\n')
    queries.stop(started(1))  # the first of all adds what stays for ever
    before = listeners(spark)
    query = started(2)
    query.processAllAvailable()
    assert listeners(spark) == before + 1, "Spark keeps none for a query: stopping it is enough"
    queries.stop(query)
    assert listeners(spark) == before
