"""Spark's Kafka sink in Kafka transactions: a batch's records and its end offsets, both or neither.

The sink has no transactions of its own, but all of its tasks write through one Java producer. This module begins and
commits transactions on that producer from the driver while the tasks send. Records never leave the JVM.

If it were another producer, every batch would fail and write nothing: a producer with a transactional id refuses to
send before its `initTransactions`. This holds where tasks run in the driver's JVM, as upstream's do.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lozenge.errors import BrokerUnavailable, Fenced
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark import internals
from lozenge.spark.checkpoint import Offsets
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
_FENCED = ("ProducerFencedException", "InvalidProducerEpochException", "CommitFailedException")


class Sink:
    """The writer of instance `name` while `generation` of its group lasts; any thread may call `abort`.

    Each sink has a producer of its own, which fences the previous one: late records of an aborted batch cannot join a
    later transaction. Raises BrokerUnavailable.
    """

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, name: str, generation: Any) -> None:
        self._name, self._generation, self._bootstrap = name, generation, kafka.bootstrap
        self._kafka = internals.java(spark).org.apache.kafka
        transactional_id = kafka.topics.prefixed(name)
        options = {**kafka.spark(), **_OPTIONS, "kafka.transactional.id": transactional_id}
        self._sink = SinkProducer(spark, transactional_id, options)
        self._producer = self._sink.java
        with self._raising("claiming"):
            self._producer.initTransactions()

    def commit(self, rows: DataFrame, ends: Offsets, metadata: CommitMetadata | None) -> None:
        """Writes `rows` and commits `ends` with `metadata`, both or neither.

        Raises Fenced if the generation is over, else the error of Spark or Kafka. After an error nothing was written.
        """
        with self._raising("writing"):
            self._producer.beginTransaction()
            self._send(rows)
            self._move(ends, metadata)
            self._commit()

    def move(self, ends: Offsets, metadata: CommitMetadata) -> None:
        """Commits `ends` with `metadata`; raises as `commit` does."""
        with self._raising("committing"):
            self._producer.beginTransaction()
            self._move(ends, metadata)
            self._commit()

    def abort(self) -> None:
        """Aborts the batch's transaction, so that no reader waits for its end; from any thread."""
        with suppress(Exception):  # no transaction, one being committed, or no broker: all are safe
            self._producer.abortTransaction()

    def close(self) -> None:
        """Returns the producer to Spark's pool."""
        self._sink.close()

    def _send(self, rows: DataFrame) -> None:
        rows.write.format("kafka").options(**self._sink.options).save()

    def _move(self, ends: Offsets, metadata: CommitMetadata | None) -> None:
        kafka = self._kafka
        text = f"{metadata.encode() if metadata else ''}\0"  # librdkafka reads up to the next zero byte
        offsets = {
            kafka.common.TopicPartition(topic, int(number)): kafka.clients.consumer.OffsetAndMetadata(end, text)
            for topic, of in ends.items()
            for number, end in of.items()
        }
        self._producer.sendOffsetsToTransaction(offsets, self._generation)

    def _commit(self) -> None:
        self._producer.commitTransaction()

    @contextmanager
    def _raising(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Spark and py4j wrap Java exceptions in types of their own
            self.abort()
            text = str(error)
            if any(name in text for name in _FENCED):
                raise Fenced(
                    f"{doing} a transaction of {self._name}: other instances own its partitions now",
                    hint="its session expired; nothing was written, and a restart joins the group again",
                ) from error
            if "org.apache.kafka.common.errors.TimeoutException" in text:
                raise BrokerUnavailable(
                    f"{doing} a transaction of {self._name}: the broker at {self._bootstrap} did not answer in time",
                    hint="check the broker; a restart resumes at the last committed offsets",
                ) from error
            raise
