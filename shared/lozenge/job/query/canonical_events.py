"""Reads the canonical topic, as a stream from given offsets or as bounded ranges, and decodes its events."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.schemas import Schema, newest
from lozenge.detector.definition import INPUT
from lozenge.durations import in_milliseconds
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark import avro
from lozenge.spark.live_lag import group_of

RECORDS = "value binary, partition int, offset bigint, headers array<struct<key: string, value: binary>>"
"""The columns of a Kafka record that an event is made of."""
Ranges = Mapping[int, tuple[int, int]]
"""First offset (inclusive) and last offset (exclusive) by partition."""


def _options(kafka: KafkaSettings, app: str) -> dict[str, str]:
    return kafka.spark() | {
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        # a batch reads up to known offsets; at the end of the topic a fetch would wait for the default half second
        "kafka.fetch.max.wait.ms": "20",
        "failOnDataLoss": "true",
        "groupIdPrefix": app,
    }


def stream(
    spark: SparkSession, kafka: KafkaSettings, app: str, topic: str, start: Mapping[int, int], max_batch: int | None
) -> DataFrame:
    """The topic's records from `start` on, at most `max_batch` offsets in a batch; None for Real-Time Mode."""
    assigned = json.dumps({topic: sorted(start)})
    starting = json.dumps({topic: {str(p): o for p, o in start.items()}})
    reader = spark.readStream.format("kafka").options(**_options(kafka, app))
    if max_batch is None:  # Real-Time Mode waits for the next record in a fetch, so a long wait costs less
        reader = reader.option("kafka.fetch.max.wait.ms", "500").option("groupIdPrefix", group_of(app))
    else:
        reader = reader.option("maxOffsetsPerTrigger", str(max_batch))
    return reader.options(assign=assigned, startingOffsets=starting).load()


def bounded(spark: SparkSession, kafka: KafkaSettings, app: str, topic: str, ranges: Ranges) -> DataFrame:
    """The records of `ranges`, as a DataFrame that is not a stream."""
    reader = spark.read.format("kafka").options(**_options(kafka, app))
    return reader.options(
        assign=json.dumps({topic: sorted(ranges)}),
        startingOffsets=json.dumps({topic: {str(p): r[0] for p, r in ranges.items()}}),
        endingOffsets=json.dumps({topic: {str(p): r[1] for p, r in ranges.items()}}),
    ).load()


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
