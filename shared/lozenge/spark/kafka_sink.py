"""Spark's Kafka sink: what it takes, how it writes in Real-Time Mode, and the Java producer behind it.

All tasks that write with the same options write through one producer, which the connector keeps for whoever comes with
them. `SinkProducer` comes with them first, so the driver holds the very producer that its tasks use. That is so where
tasks run in the driver's JVM, and not on a cluster.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

COLUMNS = ("topic", "partition", "key", "value", "headers")
"""Of the rows that it takes."""
AT_ONCE = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.linger.ms": "0",
}
"""Each row at once, acknowledged by all replicas, once however often it has to be sent, and in the order given."""
_SERIALIZERS = dict.fromkeys(
    ("key.serializer", "value.serializer"), "org.apache.kafka.common.serialization.ByteArraySerializer"
)
_NUMBERS = count()
_CHECK = "spark.sql.streaming.realTimeMode.allowlistCheck"


def in_real_time(rows: DataFrame, options: Mapping[str, str], batch: str) -> DataStreamWriter:
    """Writes each of the `rows` when it comes; a `batch` is an interval as Spark takes it."""
    writer = rows.writeStream.format("kafka").options(**options).outputMode("update")
    return writer.trigger(realTime=batch)  # type: ignore[call-overload, no-any-return]


@contextmanager
def into_nothing(rows: DataFrame, batch: str) -> Iterator[StreamingQuery]:
    """As `in_real_time`, but it runs, until the block ends, and what comes out is thrown away."""
    writer = rows.writeStream.format("noop").outputMode("update").trigger(realTime=batch)  # type: ignore[call-overload]
    with tempfile.TemporaryDirectory(prefix="lozenge-nothing-") as folder:
        rows.sparkSession.conf.set(_CHECK, "false")  # Spark's list of what that mode can write to lacks it
        try:
            query: StreamingQuery = writer.option("checkpointLocation", Path(folder).as_uri()).start()
        finally:
            rows.sparkSession.conf.unset(_CHECK)
        try:
            yield query
        finally:
            query.stop()


class SinkProducer:
    """A producer for the sink's `options`, nobody else's: these have its `name` and a number as their client.id."""

    def __init__(self, spark: SparkSession, name: str, options: Mapping[str, str]) -> None:
        self.options = {**options, "kafka.client.id": f"{name}-{next(_NUMBERS)}"}
        self._jvm = cast(Any, spark._jvm)
        pools = self._jvm.org.apache.spark.sql.kafka010.producer
        self._pool = getattr(getattr(pools, "InternalKafkaProducerPool$"), "MODULE$")
        java = {name.removeprefix("kafka."): value for name, value in self.options.items()}
        self._cached = self._pool.acquire(java | _SERIALIZERS)
        self.java: Any = self._cached.producer()

    def close(self) -> None:
        """From now on nothing is sent any more, not even what tasks have handed over."""
        with suppress(Exception):  # with the JVM it is gone anyway
            self.java.close(self._jvm.java.time.Duration.ZERO)
            self._pool.release(self._cached)
