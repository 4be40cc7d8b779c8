"""Spark's Kafka sink: the columns it takes, how it writes in Real-Time Mode, and the Java producer behind it.

All tasks that write with the same options share one producer, which the connector pools by these options.
`SinkProducer` asks the pool first, so the driver holds the very producer that its tasks use. This holds where tasks run
in the driver's JVM, and not on a cluster.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.spark.internals import driver_jvm, kafka_connector, queries

COLUMNS = ("topic", "partition", "key", "value", "headers")
"""Of the rows that it takes."""
UNBATCHED = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.linger.ms": "0",
}
"""Each row is sent when it comes, acknowledged by all replicas, in order, and written once however often it is sent."""
_SERIALIZERS = dict.fromkeys(
    ("key.serializer", "value.serializer"), "org.apache.kafka.common.serialization.ByteArraySerializer"
)
_NUMBERS = count()


def realtime_writer(rows: DataFrame, options: Mapping[str, str], duration: str) -> DataStreamWriter:
    """Writes each of the `rows` when it comes; a batch lasts for `duration`, an interval as Spark takes it."""
    writer = rows.writeStream.format("kafka").options(**options).outputMode("update")
    return writer.trigger(realTime=duration)  # type: ignore[call-overload, no-any-return]


@contextmanager
def discarding(rows: DataFrame, duration: str) -> Iterator[StreamingQuery]:
    """A query as `realtime_writer` makes it, which runs until the block ends and discards its rows."""
    writer = rows.writeStream.format("noop").outputMode("update")
    writer = writer.trigger(realTime=duration)  # type: ignore[call-overload]
    with tempfile.TemporaryDirectory(prefix="lozenge-nothing-") as folder:
        with queries.any_sink_in_real_time(rows.sparkSession):
            query: StreamingQuery = writer.option("checkpointLocation", Path(folder).as_uri()).start()
        try:
            yield query
        finally:
            query.stop()


class SinkProducer:
    """The producer of a sink with `options`, of no other sink: its client.id is `name` and a number."""

    def __init__(self, spark: SparkSession, name: str, options: Mapping[str, str]) -> None:
        self.options = {**options, "kafka.client.id": f"{name}-{next(_NUMBERS)}"}
        self._no_wait = driver_jvm.java(spark).java.time.Duration.ZERO
        params = {name.removeprefix("kafka."): value for name, value in self.options.items()}
        self._pooled = kafka_connector.PooledProducer(spark, params | _SERIALIZERS)
        self.java: Any = self._pooled.java

    def close(self) -> None:
        """From now on nothing is sent any more, not even what tasks have handed over."""
        with suppress(Exception):  # it is gone with the JVM
            self.java.close(self._no_wait)
            self._pooled.release()
