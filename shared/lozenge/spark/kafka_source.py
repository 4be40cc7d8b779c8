"""Reading a topic by Spark: as a stream from given offsets, or as a bounded range."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.live_lag import reader_group

RECORDS = "value binary, partition int, offset bigint, headers array<struct<key: string, value: binary>>"
"""The columns of a Kafka record that become an event."""
Ranges = Mapping[int, tuple[int, int]]
"""Offsets by partition: from (inclusive) and to (exclusive)."""


def stream(
    spark: SparkSession, kafka: KafkaSettings, app: str, topic: str, start: Mapping[int, int], max_batch: int | None
) -> DataFrame:
    """The topic's records from `start` on, at most `max_batch` offsets in a batch; None for Real-Time Mode."""
    reader = spark.readStream.format("kafka").options(**_options(kafka, app))
    if max_batch is None:  # it waits at the broker for the next record, and an idle wait should be long
        reader = reader.option("kafka.fetch.max.wait.ms", "500").option("groupIdPrefix", reader_group(app))
    else:
        reader = reader.option("maxOffsetsPerTrigger", str(max_batch))
    return reader.options(assign=_partitions(topic, start), startingOffsets=_offsets(topic, start)).load()


def bounded(spark: SparkSession, kafka: KafkaSettings, app: str, topic: str, ranges: Ranges) -> DataFrame:
    """The records of `ranges`, as a DataFrame that is not a stream."""
    reader = spark.read.format("kafka").options(**_options(kafka, app))
    return reader.options(
        assign=_partitions(topic, ranges),
        startingOffsets=_offsets(topic, {partition: start for partition, (start, _) in ranges.items()}),
        endingOffsets=_offsets(topic, {partition: end for partition, (_, end) in ranges.items()}),
    ).load()


def _options(kafka: KafkaSettings, app: str) -> dict[str, str]:
    return kafka.spark() | {
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        # a batch asks only for what is there: at the topic's end, the usual half second would be spent for nothing
        "kafka.fetch.max.wait.ms": "20",
        "failOnDataLoss": "true",
        "groupIdPrefix": app,
    }


def _partitions(topic: str, partitions: Mapping[int, object]) -> str:
    return json.dumps({topic: sorted(partitions)})


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in offsets.items()}})
