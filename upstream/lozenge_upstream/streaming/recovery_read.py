"""The recovery read after Real-Time Mode: what the output topics contain ahead of the group's offsets.

A task reads one raw partition and writes in its order, and one producer keeps that order in each output partition. So
an output partition contains everything of a raw partition up to the highest raw offset found in it. Each output record
carries its raw offset: an event in `raw`, a dead letter in its headers.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts.dead_letters import RAW_POSITION
from lozenge.contracts.record import Partition
from lozenge.contracts.schemas import Schema
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import ranges_since
from lozenge.spark import avro
from lozenge.spark.kafka_source import bounded
from lozenge_upstream.normalise.output_records import StreamOutput

_KEYS = ("raw_topic", "raw_partition", "to_topic", "to_partition")
_HIGHEST = "_highest"


class RecoveryRead:
    """The highest raw offset by raw topic and partition, output topic and partition; None if nothing was written.

    `until` is the offset after the highest of each raw partition: nothing was written from there on.
    """

    def __init__(self, highest: DataFrame | None = None, until: Mapping[Partition, int] | None = None) -> None:
        self._highest, self.until = highest, until or {}

    def skip_written(self, rows: DataFrame, raw: str) -> DataFrame:
        """The `rows` of the raw topic `raw` that have not been written yet."""
        if self._highest is None:
            return rows
        highest = self._highest.where(F.col("raw_topic") == raw).drop("raw_topic")
        target = (F.col("topic") == F.col("to_topic")) & (F.col("partition") == F.col("to_partition"))
        same = target & (F.col("raw.partition") == F.col("raw_partition"))
        joined = rows.join(F.broadcast(highest), same, "left")
        return joined.where(F.col("raw.offset") > F.coalesce(_HIGHEST, F.lit(-1))).select(*rows.columns)


def recovery_read(
    spark: SparkSession, kafka: KafkaSettings, since: datetime | None, target: StreamOutput
) -> RecoveryRead:
    """What was written to the topics of `target` since `since`; nothing if that is None. Raises BrokerUnavailable.

    No other writer of these partitions may be running.
    """
    if since is None:
        return RecoveryRead()
    schema = target.stream.event_schema
    earlier = [known for known in learn(kafka, schema) if known.id != schema.id]
    outputs = {topic: _origin_of_event(schema, earlier) for topic in target.keys}
    outputs[target.dead_letters] = _origin_of_dead_letter()
    highest = [
        _highest(records, origin).toArrow()
        for topic, origin in outputs.items()
        if (records := _records(spark, kafka, target.app, topic, since)) is not None
    ]
    if not highest:
        return RecoveryRead()
    found = pa.concat_tables(highest)
    until: dict[Partition, int] = {}
    for row in found.to_pylist():
        raw = row["raw_topic"], row["raw_partition"]
        until[raw] = max(until.get(raw, 0), row[_HIGHEST] + 1)
    return RecoveryRead(spark.createDataFrame(found), until)


def _records(spark: SparkSession, kafka: KafkaSettings, app: str, topic: str, since: datetime) -> DataFrame | None:
    ranges = ranges_since(kafka, topic, kafka.topics.partitions, since)
    return bounded(spark, kafka, app, topic, ranges) if ranges else None


def _highest(records: DataFrame, origin: Column) -> DataFrame:
    read = records.select(origin.alias("raw"), "topic", "partition")
    read = read.dropna(subset=["raw.topic", "raw.partition", "raw.offset"])
    keys = zip(_KEYS, ("raw.topic", "raw.partition", "topic", "partition"), strict=True)
    return read.groupBy(*(F.col(column).alias(name) for name, column in keys)).agg(F.max("raw.offset").alias(_HIGHEST))


def _origin_of_event(schema: Schema, earlier: Iterable[Schema]) -> Column:
    return avro.record_or_null(F.col("value"), [schema, *earlier], schema)["raw"]


def _origin_of_dead_letter() -> Column:
    found = F.get(F.filter("headers", lambda header: header["key"] == RAW_POSITION), F.lit(0))
    origin = F.split(found["value"].cast("string"), "/")
    return F.struct(
        F.get(origin, F.lit(0)).alias("topic"),
        F.get(origin, F.lit(1)).try_cast("int").alias("partition"),
        F.get(origin, F.lit(2)).try_cast("bigint").alias("offset"),
    )
