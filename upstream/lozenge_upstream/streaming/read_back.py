"""What upstream has written in Real-Time Mode behind its group's offsets, so that nothing of it is written again.

A task reads one raw partition and writes in its order, and one producer keeps that order in every partition that it
writes. So of a raw partition everything up to the highest raw offset that stands in an output partition has been
written there. Which one that is each output record tells: an event in its `raw`, a dead letter in its headers.
"""

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.contracts import topics
from lozenge.contracts.headers import PLACE
from lozenge.contracts.schemas import newest, packaged
from lozenge.job.query.canonical_events import bounded
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds, offsets_at
from lozenge.spark import avro
from lozenge_upstream.normalise.output_records import APP

_PLACES = ("raw_topic", "raw_partition", "to_topic", "to_partition")
_MARK = "_written"


class ReadBack:
    """The highest raw offset by raw topic and partition, output topic and partition; None where that is nothing."""

    def __init__(self, marks: DataFrame | None) -> None:
        self._marks = marks

    def left_out(self, rows: DataFrame, raw: str) -> DataFrame:
        """The `rows` of the raw topic that have not been written."""
        if self._marks is None:
            return rows
        marks = self._marks.where(F.col("raw_topic") == raw).drop("raw_topic")
        place = (F.col("topic") == F.col("to_topic")) & (F.col("partition") == F.col("to_partition"))
        same = place & (F.col("raw.partition") == F.col("raw_partition"))
        joined = rows.join(F.broadcast(marks), same, "left")
        return joined.where(F.col("raw.offset") > F.coalesce(_MARK, F.lit(-1))).select(*rows.columns)


def read_back(spark: SparkSession, kafka: KafkaSettings, since: datetime | None, rekeys: Collection[str]) -> ReadBack:
    """What was written since `since`; nothing if that is None. Raises BrokerUnavailable.

    Nothing that could write more of it may be running.
    """
    if since is None:
        return ReadBack(None)
    outputs = {topic: _origin_of_event() for topic in (topics.EVENTS, *map(topics.events_by, rekeys))}
    outputs[topics.dead_letters(APP)] = _origin_of_letter()
    marks = [
        _highest(records, origin).toArrow()
        for topic, origin in outputs.items()
        if (records := _records(spark, kafka, topic, since)) is not None
    ]
    return ReadBack(spark.createDataFrame(pa.concat_tables(marks)) if marks else None)


def _records(spark: SparkSession, kafka: KafkaSettings, topic: str, since: datetime) -> DataFrame | None:
    starts = offsets_at(kafka, topic, topics.EVENT_PARTITIONS, since)
    ends = bounds(kafka, topic, topics.EVENT_PARTITIONS)
    ranges = {p: (start, ends[p][1]) for p, start in starts.items() if start < ends[p][1]}
    return bounded(spark, kafka, APP, topic, ranges) if ranges else None


def _highest(records: DataFrame, origin: Column) -> DataFrame:
    read = records.select(origin.alias("raw"), "topic", "partition")
    places = zip(_PLACES, ("raw.topic", "raw.partition", "topic", "partition"), strict=True)
    return read.groupBy(*(F.col(place).alias(name) for name, place in places)).agg(F.max("raw.offset").alias(_MARK))


def _origin_of_event() -> Column:
    known = [schema for schema in packaged() if schema.name == "event"]
    return avro.decode(F.col("value"), known, newest("event"))["raw"]


def _origin_of_letter() -> Column:
    found = F.get(F.filter("headers", lambda header: header["key"] == PLACE), F.lit(0))
    place = F.split(found["value"].cast("string"), "/")
    return F.struct(
        place[0].alias("topic"), place[1].cast("int").alias("partition"), place[2].cast("bigint").alias("offset")
    )
