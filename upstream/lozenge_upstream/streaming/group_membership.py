"""The raw partitions of this instance, assigned by Kafka's group protocol.

The membership is a Java consumer in Spark's JVM, because a transaction needs the group metadata of a consumer in the
producer's JVM (`sendOffsetsToTransaction`). It fetches nothing. Its assignment is the instance's until Kafka revokes
it. Each assignment has a generation, and the broker refuses a transaction that commits offsets under an older one
(KIP-447): this fences instances from each other.

An instance that dies loses its partitions after `SESSION_SECONDS`. On a revocation an instance completes its batch
first, and the rebalance waits for it.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.spark import internals
from lozenge_upstream.streaming.query_errors import summary

SESSION_SECONDS = 8
_HEARTBEAT_SECONDS = 2
_POLL_MILLISECONDS = 200
_SETTINGS = {
    "session.timeout.ms": str(SESSION_SECONDS * 1000),
    "heartbeat.interval.ms": str(_HEARTBEAT_SECONDS * 1000),
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "allow.auto.create.topics": "false",
    "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
}


@dataclass(frozen=True, eq=False)
class Assignment:
    """The partitions that one generation of the group assigned; `generation` is Java's group metadata."""

    partitions: Mapping[str, Collection[int]]
    generation: Any


class UpstreamMembership:
    """Instance `name` as a member of a group that reads `topics`; its thread polls until `close`."""

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, group: str, name: str, topics: list[str]) -> None:
        jvm = internals.java(spark)
        internals.accept_callbacks(spark)
        self._group, self._settings = kafka.topics.prefixed(group), kafka.java()
        self._admin = jvm.org.apache.kafka.clients.admin.Admin
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            {**self._settings, **_SETTINGS, "group.id": self._group, "client.id": kafka.topics.prefixed(name)}
        )
        self._wait = jvm.java.time.Duration.ofMillis(_POLL_MILLISECONDS)
        self._topics = topics
        self._assignment: Assignment | None = None
        self._working = threading.Lock()
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    @contextmanager
    def holding(self) -> Iterator[Assignment | None]:
        """This instance's assignment, None if there is none. No other instance gets it within the block.

        So the block has to end soon after `is_revoked`. Raises the error that ended the membership, if any.
        """
        with self._working:
            if self._failure is not None:
                raise self._failure
            yield self._assignment

    def is_revoked(self, assignment: Assignment) -> bool:
        """Whether Kafka revokes `assignment`, or has revoked it."""
        return self._assignment is not assignment

    def fence_departed(self) -> None:
        """Aborts the open transactions of instances that have left the group.

        Their transactional ids are their member names. Until then the group's offsets are undecided, and
        `read_committed` readers wait.
        """
        admin = self._admin.create(self._settings)
        try:
            described = admin.describeConsumerGroups([self._group]).all().get()[self._group]
            members = {member.clientId() for member in described.members()}
            listed = admin.listTransactions().all().get()
            begun = [t.transactionalId() for t in listed if t.state().toString() == "Ongoing"]
            departed = [name for name in begun if name.startswith(f"{self._group}-") and name not in members]
            if departed:
                admin.fenceProducers(departed).all().get()
                logging.logger().warning("open transactions of departed instances aborted", instances=departed)
        finally:
            admin.close()

    def close(self) -> None:
        """Leaves the group at once; call it outside of `holding`."""
        self._closed.set()
        self._thread.join(SESSION_SECONDS)

    # called by the consumer, within its poll

    def revoked(self) -> None:
        """Returns when no batch of the assignment runs any more."""
        self._assignment = None
        with self._working:
            pass

    def assigned(self, given: Any) -> None:
        """Takes the assignment of a new generation."""
        self._consumer.pause(given)
        partitions: dict[str, list[int]] = {}
        for partition in given:
            partitions.setdefault(partition.topic(), []).append(partition.partition())
        self._assignment = Assignment(partitions, self._consumer.groupMetadata()) if partitions else None

    def _run(self) -> None:
        try:
            self._consumer.subscribe(self._topics, _Listener(self))
            while not self._closed.is_set():
                self._consumer.poll(self._wait)
            self._consumer.close()
        except Exception as error:  # py4j wraps whatever Java raised
            self._assignment = None
            self._failure = LozengeError(
                f"taking part in the group {self._group}: {summary(error)}",
                hint="check the broker and the rights of this principal; a restart joins the group again",
            )


class _Listener:
    """Java's view of a membership."""

    def __init__(self, membership: UpstreamMembership) -> None:
        self._membership = membership

    def onPartitionsRevoked(self, partitions: Any) -> None:
        self._membership.revoked()

    def onPartitionsLost(self, partitions: Any) -> None:
        self._membership.revoked()

    def onPartitionsAssigned(self, partitions: Any) -> None:
        self._membership.assigned(partitions)

    class Java:
        implements = ("org.apache.kafka.clients.consumer.ConsumerRebalanceListener",)
