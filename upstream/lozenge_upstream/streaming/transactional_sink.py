"""Batches in Kafka transactions: a batch's records and its end offsets, both or neither."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame

from lozenge.errors import BrokerUnavailable, Fenced
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer

_FENCED = ("ProducerFencedException", "InvalidProducerEpochException", "CommitFailedException")
_TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"


class Sink:
    """Writes through `producer`, which it claims; any thread may call `abort`. Raises BrokerUnavailable."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer
        with self._raising("claiming"):
            producer.claim()

    def commit(self, rows: DataFrame, ends: Offsets, metadata: CommitMetadata) -> None:
        """Writes `rows` and commits `ends` with `metadata`, both or neither.

        Raises Fenced if the generation is over, else the error of Spark or Kafka. After an error nothing was written.
        """
        with self._raising("writing"):
            self._producer.begin()
            self._producer.send(rows)
            self._producer.send_offsets(ends, metadata)
            self._producer.commit()

    def move(self, ends: Offsets, metadata: CommitMetadata) -> None:
        """Commits `ends` with `metadata`; raises as `commit` does."""
        with self._raising("committing"):
            self._producer.begin()
            self._producer.send_offsets(ends, metadata)
            self._producer.commit()

    def abort(self) -> None:
        """Aborts the batch's transaction, so that no reader waits for its end; from any thread."""
        with suppress(Exception):  # no transaction, one being committed, or no broker: all are safe
            self._producer.abort()

    def close(self) -> None:
        """Closes the producer: nothing is sent any more."""
        self._producer.close()

    @contextmanager
    def _raising(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Spark and py4j wrap Java exceptions in types of their own
            self.abort()
            text = str(error)
            if any(name in text for name in _FENCED):
                raise Fenced(
                    f"{doing} a transaction of {self._producer.name}: other instances own its partitions now",
                    hint="its session expired; nothing was written, and a restart joins the group again",
                ) from error
            if _TIMEOUT in text:
                raise BrokerUnavailable(
                    f"{doing} a transaction of {self._producer.name}: "
                    f"the broker at {self._producer.bootstrap} did not answer in time",
                    hint="check the broker; a restart resumes at the last committed offsets",
                ) from error
            raise
