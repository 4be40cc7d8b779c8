"""Rows that were written before are skipped, by raw partition and output partition."""

from typing import Any

from pyspark.sql import SparkSession

from lozenge_upstream.streaming.recovery_read import RecoveryRead, recovery_read

HIGHEST = [
    ("AUTH-JSON", 0, "events", 0, 5),
    ("AUTH-JSON", 0, "events", 1, 2),
    ("AUTH-ISO", 1, "events", 0, 9),
]
ROWS = [
    ("events", 0, (0, 5)),
    ("events", 0, (0, 6)),
    ("events", 1, (0, 2)),
    ("events", 1, (0, 3)),
    ("events", 0, (1, 0)),
    ("copies", 0, (0, 0)),
]


def test_each_output_partition_has_its_own_highest_offset_of_a_raw_partition(upstream_spark: SparkSession) -> None:
    columns = "raw_topic string, raw_partition int, to_topic string, to_partition int, _highest bigint"
    written = RecoveryRead(upstream_spark.createDataFrame(HIGHEST, columns))
    rows = upstream_spark.createDataFrame(
        ROWS, "topic string, partition int, raw struct<partition: int, offset: bigint>"
    )
    left = written.skip_written(rows, "AUTH-JSON")
    assert left.columns == rows.columns
    found = {(row["topic"], row["partition"], tuple(row["raw"])) for row in left.collect()}
    assert found == {("events", 0, (0, 6)), ("events", 1, (0, 3)), ("events", 0, (1, 0)), ("copies", 0, (0, 0))}


def test_nothing_is_read_and_nothing_skipped_where_no_record_was_written_ahead() -> None:
    nothing: Any = None
    rows: Any = object()
    found = recovery_read(nothing, nothing, None, nothing)
    assert found.skip_written(rows, "AUTH-JSON") is rows
    assert found.until == {}
