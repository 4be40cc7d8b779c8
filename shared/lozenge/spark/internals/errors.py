"""Errors of Spark, known by their text."""

import re

from pyspark.errors import PySparkException

_OTHER_STATE = re.compile(r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_\w*SCHEMA")
_RECORDS_GONE = ("OffsetOutOfRangeException", "KAFKA_DATA_LOSS", "data may have been lost")


def is_result_too_large(error: Exception) -> bool:
    """Whether a batch gave more than the driver takes. Assumes that the error names the setting that bounds it."""
    return "spark.driver.maxResultSize" in str(error)


def is_other_state(error: Exception) -> bool:
    """Whether a checkpoint's state belongs to another plan. Assumes the names of Spark's error conditions for that."""
    return _OTHER_STATE.search(str(error)) is not None


def is_timestamp_overflow(error: Exception) -> bool:
    """Whether a record's Kafka timestamp is beyond what Spark's source can read.

    Assumes that the source multiplies milliseconds by a thousand and checks the result. No expression of a mapping can
    overflow, so that no other cause has this text.
    """
    return "java.lang.ArithmeticException: long overflow" in str(error)


def are_records_gone(error: Exception) -> bool:
    """Whether the records to read next no longer exist. Assumes a word of each text of Kafka's consumer and Spark's."""
    return any(word in str(error) for word in _RECORDS_GONE)


def ended_at_start(error: PySparkException) -> bool:
    """Whether a JVM ended before it named its port. Assumes the name of PySpark's error condition for that."""
    return error.getCondition() == "JAVA_GATEWAY_EXITED"
