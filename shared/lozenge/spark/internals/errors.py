"""Errors of Spark, known by their text."""

import re

from pyspark.errors import PySparkException

_OTHER_STATE = re.compile(r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_\w*SCHEMA")


def is_result_too_large(error: Exception) -> bool:
    """Whether a batch gave more than the driver takes. Assumes that the error names the setting that bounds it."""
    return "spark.driver.maxResultSize" in str(error)


def is_other_state(error: Exception) -> bool:
    """Whether a checkpoint's state belongs to another plan. Assumes the names of Spark's error conditions for that."""
    return _OTHER_STATE.search(str(error)) is not None


def ended_at_start(error: PySparkException) -> bool:
    """Whether a JVM ended before it named its port. Assumes the name of PySpark's error condition for that."""
    return error.getCondition() == "JAVA_GATEWAY_EXITED"
