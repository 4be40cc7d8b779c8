"""Records of the canonical topic as events."""

from collections.abc import Iterable
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.schemas import Schema, newest
from lozenge.detector.definition import INPUT
from lozenge.durations import in_milliseconds
from lozenge.spark import avro


def events(raw: DataFrame, known: Iterable[Schema], key: str) -> DataFrame:
    """Canonical events of Kafka records, with the platform's struct column `INPUT` as the last column.

    Events without the `key` (an unknown account, for example) are skipped, because no alert could name their entity.
    """
    index = F.array_position("headers.key", TRACEPARENT) - 1
    traceparent = F.get("headers.value", index.cast("int")).cast("string")
    decoded = raw.select(
        avro.decode(F.col("value"), known, newest("event")).alias("event"),
        traceparent.alias("traceparent"),
        "partition",
        "offset",
    )
    return decoded.where(F.col(f"event.{key}").isNotNull()).select(
        "event.*",
        F.struct(
            F.col(f"event.{key}").alias("key"),
            "partition",
            "offset",
            "traceparent",
            F.col("event.raw.timestamp").alias("arrived"),
        ).alias(INPUT),
    )


def watermarked(per_partition: Iterable[DataFrame], lateness: timedelta) -> DataFrame:
    """One stream of events whose watermark follows the slowest partition.

    Spark takes the minimum of the watermarks of a union. So a partition that is read ahead of the others, as after an
    outage, makes none of their events late.
    """
    delay = in_milliseconds(lateness.total_seconds())
    return reduce(DataFrame.unionByName, (part.withWatermark("event_time", delay) for part in per_partition))


def without(raw: DataFrame, excluded: Iterable[tuple[int, int]]) -> DataFrame:
    """The records without those at the `excluded` partitions and offsets."""
    for partition, offset in sorted(excluded):
        raw = raw.where(~((F.col("partition") == partition) & (F.col("offset") == offset)))
    return raw
