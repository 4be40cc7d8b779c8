"""The Java producer of Spark's Kafka sink, with transactions.

The sink has no transactions of its own, but all of its tasks write through one Java producer. This module begins and
commits transactions on that producer from the driver while the tasks send. Records never leave the JVM.

If it were another producer, every batch would fail and write nothing: a producer with a transactional id refuses to
send before its `initTransactions`. This holds where tasks run in the driver's JVM, as upstream's do.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge.spark.internals import driver_jvm
from lozenge.spark.kafka_sink import SinkProducer

TRANSACTION_SECONDS = 300
"""Longer than any batch takes to write. The next process fences a dead one, which ends its open transaction earlier."""

# a dead letter is its raw record with more headers, so it may exceed the raw topic's limit
LARGE_RECORDS = {"kafka.max.request.size": str(8 * 1024 * 1024)}
_OPTIONS = {
    "kafka.acks": "all",
    "kafka.linger.ms": "5",
    "kafka.batch.size": str(256 * 1024),
    **LARGE_RECORDS,
    "kafka.transaction.timeout.ms": str(TRANSACTION_SECONDS * 1000),
}


class TransactionalProducer:
    """The producer of instance `name` while `generation` of its group lasts. Errors are those of Spark and Java.

    Each is a Java producer of its own, and `claim` fences the previous one of that name: late records of an aborted
    batch cannot join a later transaction.
    """

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, name: str, generation: Any) -> None:
        self.name, self.bootstrap = name, kafka.bootstrap
        self._generation = generation
        self._kafka = driver_jvm.java(spark).org.apache.kafka
        transactional_id = kafka.topics.prefixed(name)
        options = {**kafka.spark(), **_OPTIONS, "kafka.transactional.id": transactional_id}
        self._sink = SinkProducer(spark, transactional_id, options)

    def claim(self) -> None:
        """Aborts an open transaction of this name, and fences its producer; before the first transaction."""
        self._sink.java.initTransactions()

    def begin(self) -> None:
        """Begins a transaction."""
        self._sink.java.beginTransaction()

    def send(self, rows: DataFrame) -> None:
        """Writes `rows` in the transaction; the broker has acknowledged them when this returns."""
        rows.write.format("kafka").options(**self._sink.options).save()

    def send_offsets(self, ends: Offsets, metadata: CommitMetadata) -> None:
        """Adds the group's offsets and their metadata to the transaction."""
        kafka = self._kafka
        text = f"{metadata.encode()}\0"  # librdkafka reads up to the next zero byte
        offsets = {
            kafka.common.TopicPartition(topic, int(number)): kafka.clients.consumer.OffsetAndMetadata(end, text)
            for topic, of in ends.items()
            for number, end in of.items()
        }
        self._sink.java.sendOffsetsToTransaction(offsets, self._generation)

    def commit(self) -> None:
        """Commits the transaction."""
        self._sink.java.commitTransaction()

    def abort(self) -> None:
        """Aborts the transaction; from any thread."""
        self._sink.java.abortTransaction()

    def close(self) -> None:
        """Returns the Java producer to Spark's pool."""
        self._sink.close()
