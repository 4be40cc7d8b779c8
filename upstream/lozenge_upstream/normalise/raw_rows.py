"""Raw records that Python has read, as the rows that Spark's source would give, also where it cannot read them.

Spark counts microseconds in 64 bits. The Kafka timestamp of a producer that counts in nanoseconds is beyond that, and
fails a query whatever else it reads. Here the record gets the last time of the calendar. So what becomes of it is what
becomes of each whose producer has no clock: a dead letter, `range:raw.timestamp`.
"""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from lozenge.moments import from_milliseconds
from lozenge_upstream.normalise.normaliser import RAW


def frame_of(spark: SparkSession, messages: Iterable[Message]) -> DataFrame:
    """The records in the columns that `normalise` takes."""
    return spark.createDataFrame(map(row_of, messages), RAW)


def row_of(message: Message) -> tuple[Any, ...]:
    """The record as a row of `RAW`; a time that no calendar has is the nearest one that it has."""
    kind, milliseconds = message.timestamp()
    key, value, headers = message.key(), message.value(), message.headers()
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    return (
        _binary(key),
        message.topic(),
        from_milliseconds(milliseconds),
        kind - 1,  # librdkafka counts from "not available", Kafka's own client from "created"
        _binary(value),
        message.partition(),
        message.offset(),
        [(name, _binary(each)) for name, each in pairs] or None,
    )


def _binary(value: str | bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value.encode() if isinstance(value, str) else value)
