"""The Spark session of a process of the suite, the same for all of its tests."""

from pyspark.sql import SparkSession

from lozenge.contracts.topics import Topics
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session


def worker_session() -> SparkSession:
    """It has a slot for each task of a query in Real-Time Mode.

    A frame that a test makes of a few rows is one task, not one for each slot.
    """
    slots = most_slots(Topics().partitions)
    return spark_session("tests", cores=slots, memory_mb=1024, conf={"spark.default.parallelism": "1"})
