"""Spark's Kafka sink in Kafka transactions: the records of a batch and how far it has read, both or neither.

The sink itself knows no transactions, but its tasks all write through one Java producer. This module begins and commits
transactions on that producer from the driver while the tasks send: records never leave the JVM.

Were it not the same one, every batch would fail and nothing would be written: a producer with a transactional id
refuses to send before its `initTransactions`. That holds where tasks run in the driver's JVM, as upstream's do.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from lozenge.errors import BrokerUnavailable, Fenced
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.kafka_sink import SinkProducer
from lozenge_upstream.streaming.group_position import Offsets

TRANSACTION_SECONDS = 300
"""Longer than any batch is written. What a dead process left open ends earlier: the next one fences it."""

# a dead letter is its raw record and some headers more, so it may exceed what the raw topic allowed
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
    """The writer of instance `name` for as long as `generation` of its group lasts; `abort` from any thread.

    Each has a producer of its own, of which it ends the one before: what tasks of an abandoned batch still send does
    not land in a later transaction. Raises BrokerUnavailable.
    """

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, name: str, generation: Any) -> None:
        self._name, self._generation, self._bootstrap = name, generation, kafka.bootstrap
        self._jvm = cast(Any, spark._jvm)
        self._sink = SinkProducer(spark, name, {**kafka.spark(), **_OPTIONS, "kafka.transactional.id": name})
        self._producer = self._sink.java
        with self._translated("claiming"):
            self._producer.initTransactions()

    def commit(self, rows: DataFrame, ends: Offsets) -> None:
        """Writes `rows` and moves the group to `ends`, both or neither.

        Raises Fenced if the generation is over, or whatever else Spark or Kafka raise; then nothing was written.
        """
        with self._translated("writing"):
            self._producer.beginTransaction()
            self._send(rows)
            self._move(ends)
            self._commit()

    def move(self, ends: Offsets, metadata: str) -> None:
        """Moves the group to `ends`, with `metadata`; raises as `commit` does."""
        with self._translated("committing"):
            self._producer.beginTransaction()
            self._move(ends, metadata)
            self._commit()

    def abort(self) -> None:
        """Takes back what is written of a batch, so that nobody has to wait for its end; from any thread."""
        with suppress(Exception):  # there is none, it is being committed, or the broker is away: all of that is safe
            self._producer.abortTransaction()

    def close(self) -> None:
        """Gives the producer back."""
        self._sink.close()

    def _send(self, rows: DataFrame) -> None:
        rows.write.format("kafka").options(**self._sink.options).save()

    def _move(self, ends: Offsets, metadata: str = "") -> None:
        kafka = self._jvm.org.apache.kafka
        text = f"{metadata}\0"  # librdkafka reads it as C does, up to the next zero byte wherever that is
        offsets = {
            kafka.common.TopicPartition(topic, int(number)): kafka.clients.consumer.OffsetAndMetadata(end, text)
            for topic, of in ends.items()
            for number, end in of.items()
        }
        self._producer.sendOffsetsToTransaction(offsets, self._generation)

    def _commit(self) -> None:
        self._producer.commitTransaction()

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Spark and py4j each have types of their own for what Java raised
            self.abort()
            text = str(error)
            if any(name in text for name in _FENCED):
                raise Fenced(
                    f"{doing} a transaction of {self._name}: other instances have its partitions now",
                    hint="it was silent for too long; nothing was written, and a restart joins the others again",
                ) from error
            if "org.apache.kafka.common.errors.TimeoutException" in text:
                raise BrokerUnavailable(
                    f"{doing} a transaction of {self._name}: the broker at {self._bootstrap} did not answer in time",
                    hint="check the broker; a restart goes on at the last committed offsets",
                ) from error
            raise
