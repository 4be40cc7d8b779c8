"""The producers of Spark's Kafka connector."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from lozenge.spark.internals.driver_jvm import java


class PooledProducer:
    """The Java producer that the connector's tasks in this JVM use for exactly these `params`.

    Assumes that the connector keeps one producer for each set of parameters, and that its writers ask the same pool
    with the same parameters. With another key the tasks would use another producer, which for a transactional id has
    no transaction and refuses to send.
    """

    def __init__(self, spark: SparkSession, params: Mapping[str, str]) -> None:
        producers = java(spark).org.apache.spark.sql.kafka010.producer
        self._pool = getattr(getattr(producers, "InternalKafkaProducerPool$"), "MODULE$")
        self._cached = self._pool.acquire(dict(params))
        self.java: Any = self._cached.producer()

    def release(self) -> None:
        """Gives it back to the pool."""
        self._pool.release(self._cached)
