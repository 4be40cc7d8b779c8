"""Records of a detector's input as events."""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from functools import reduce
from itertools import groupby
from operator import itemgetter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.schemas import Schema
from lozenge.detector.definition import INPUT
from lozenge.durations import in_milliseconds
from lozenge.job.query import alert_events
from lozenge.spark import avro
from lozenge.streams.definition import StreamDefinition


def events(raw: DataFrame, known: Iterable[Schema], stream: StreamDefinition, key: str) -> DataFrame:
    """Events of Kafka records, with the fields of `stream`, and the platform's struct `INPUT` as the last.

    `known` are versions of its schemas. Events without the column `key` (an unknown account, for example) are skipped,
    because no alert could name their entity.
    """
    readers = stream.readers(known)
    decoded = _read(raw, readers).select(
        avro.record_of("read", "schema", _any(readers)).alias("event"), "traceparent", "partition", "offset"
    )
    if stream.alerts_of:
        decoded = decoded.withColumn("event", alert_events.event("event", stream))
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


def malformed(raw: DataFrame, known: Iterable[Schema], stream: StreamDefinition) -> DataFrame:
    """The records that are no events of `stream`: partition, offset and problem, for `avro.words_of`."""
    readers = stream.readers(known)
    problem = avro.problem("read", "schema", _any(readers))
    return _read(raw, readers).select("partition", "offset", problem.alias("problem")).where("problem IS NOT NULL")


def without_schemas(raw: DataFrame, ids: Collection[int]) -> DataFrame:
    """The records without those of the schema `ids`: events of streams that others read from a merged topic."""
    found = F.coalesce(avro.schema_id(F.col("value")), F.lit(-1))
    return raw.where(~found.isin(*ids)) if ids else raw


def _any(readers: Mapping[Schema, Schema]) -> Schema:
    """One of the readers, which have the same fields."""
    return next(iter(readers.values()))


def _read(raw: DataFrame, readers: Mapping[Schema, Schema]) -> DataFrame:
    index = F.array_position("headers.key", TRACEPARENT) - 1
    return raw.select(
        avro.decode(F.col("value"), readers).alias("read"),
        avro.schema_id(F.col("value")).alias("schema"),
        F.get("headers.value", index.cast("int")).cast("string").alias("traceparent"),
        "partition",
        "offset",
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
    for partition, found in groupby(sorted(excluded), key=itemgetter(0)):
        offsets = [offset for _, offset in found]
        raw = raw.where(~((F.col("partition") == partition) & F.col("offset").isin(offsets)))
    return raw
