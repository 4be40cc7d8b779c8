"""Reads ranges of a topic by Spark: Kafka's source, the platform's Avro expressions, and Arrow."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.archive.archived_topics import ArchivedTopic
from lozenge.archive.columns import BUCKET, DAY, INGESTED_AT, OFFSET, PARTITION, PLATFORM, TIMESTAMP, column_name
from lozenge.contracts.schemas import Schema
from lozenge.kafka.schema_topic import announced
from lozenge.kafka.settings import KafkaSettings
from lozenge.sink.decoded_batch import DecodedBatch, Ranges, UnreadableRecord
from lozenge.spark import avro, kafka_source

_PROBLEM, _RECORD = "lozenge_problem", "lozenge_record"
_FROM_KAFKA = [name for name in PLATFORM.names if name != INGESTED_AT]


class SparkReader:
    """Reads records in a session. It learns schemas when a record has an id that it does not know."""

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, app: str) -> None:
        self._spark, self._kafka, self._app = spark, kafka, app
        self._announced: list[Schema] = []

    def read(self, topic: ArchivedTopic, ranges: Ranges, buckets: int) -> DecodedBatch:
        """The records of `ranges` as rows; those that cannot be decoded are unreadable."""
        raw = located(kafka_source.bounded(self._spark, self._kafka, self._app, topic.topic, ranges), buckets)
        if topic.reader is None:
            return DecodedBatch(_stamped(raw.select(*_FROM_KAFKA, "key", "value", "headers").toArrow()))
        batch = self._decoded(topic, raw)
        if any(avro.UNKNOWN_SCHEMA in each.problem for each in batch.unreadable):
            self._announced = announced(self._kafka, [topic.reader])
            batch = self._decoded(topic, raw)
        words = (each._replace(problem=avro.words_of(each.problem) or each.problem) for each in batch.unreadable)
        return DecodedBatch(batch.rows, tuple(words))

    def _decoded(self, topic: ArchivedTopic, raw: DataFrame) -> DecodedBatch:
        assert topic.reader is not None
        read = raw.select(
            *_FROM_KAFKA,
            avro.decode(F.col("value"), topic.readers(self._announced)).alias("read"),
            avro.schema_id(F.col("value")).alias("schema"),
        )
        checked = read.withColumn(_PROBLEM, avro.problem("read", "schema", topic.reader))
        # One struct, and not a column for each of its fields: with those, Spark needs nearly twice the processor time.
        record = F.when(F.col(_PROBLEM).isNull(), F.col("read.record")).alias(_RECORD)
        found = checked.select(*_FROM_KAFKA, record, _PROBLEM).toArrow()
        good = found.filter(pc.is_null(found[_PROBLEM]))
        return DecodedBatch(
            _stamped(_flat(good.drop_columns([_PROBLEM]))),
            tuple(_unreadable(found.filter(pc.is_valid(found[_PROBLEM])))),
        )


def located(records: DataFrame, buckets: int) -> DataFrame:
    """Kafka records with the day and the bucket of their rows; one without a key is in the bucket 0."""
    bucket = F.pmod(F.crc32(F.coalesce(F.col("key"), F.lit(b""))), F.lit(buckets)).cast("int")
    return records.withColumns({DAY: F.to_date(TIMESTAMP), BUCKET: bucket})


def _flat(rows: pa.Table) -> pa.Table:
    """The rows with the fields of their record as columns."""
    records: Any = rows[_RECORD].combine_chunks()
    flat = rows.drop_columns([_RECORD])
    for field, values in zip(records.type, records.flatten(), strict=True):
        flat = flat.append_column(column_name(field.name), values)
    return flat


def _stamped(rows: pa.Table) -> pa.Table:
    now = pa.repeat(pa.scalar(datetime.now(UTC), PLATFORM.field(INGESTED_AT).type), len(rows))
    return rows.append_column(INGESTED_AT, now)


def _unreadable(found: pa.Table) -> Iterator[UnreadableRecord]:
    for row in found.select([PARTITION, OFFSET, _PROBLEM]).to_pylist():
        yield UnreadableRecord(row[PARTITION], row[OFFSET], row[_PROBLEM])
