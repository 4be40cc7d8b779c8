"""The raw partitions of this instance, assigned by Kafka's group protocol.

The membership is a Java consumer in Spark's JVM, because a transaction needs the group metadata of a consumer in the
producer's JVM (`sendOffsetsToTransaction`). It fetches nothing. Its assignment is the instance's until Kafka revokes
it. Each assignment has a generation, and the broker refuses a transaction that commits offsets under an older one
(KIP-447): this fences instances from each other.

An instance that dies loses its partitions after `SESSION_SECONDS`. On a revocation an instance completes its batch
first, and the rebalance waits for it.
"""

import threading
from collections.abc import Collection, Iterable
from typing import Any

from pyspark.sql import SparkSession

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.spark.internals import driver_jvm
from lozenge_upstream.streaming.held_assignment import Assignment, HeldAssignment
from lozenge_upstream.streaming.query_errors import summary

SESSION_SECONDS = 8.0
_HEARTBEATS = 4
"""How many a session lasts."""
_POLL_MILLISECONDS = 200
_SETTINGS = {
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "allow.auto.create.topics": "false",
    "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
}


class UpstreamMembership:
    """Instance `name` as a member of a group that reads `topics`; its thread polls until `close`.

    `held` is what the group has assigned.
    """

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        group: str,
        name: str,
        topics: list[str],
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        jvm = driver_jvm.java(spark)
        driver_jvm.accept_callbacks(spark)
        self.held = HeldAssignment()
        self._group, self._settings = kafka.topics.prefixed(group), kafka.java()
        self._admin = jvm.org.apache.kafka.clients.admin.Admin
        self._session_seconds = session_seconds
        session = {
            "session.timeout.ms": str(round(session_seconds * 1000)),
            "heartbeat.interval.ms": str(round(session_seconds * 1000 / _HEARTBEATS)),
        }
        identity = {"group.id": self._group, "client.id": kafka.topics.prefixed(name)}
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            {**self._settings, **_SETTINGS, **session, **identity}
        )
        self._wait = jvm.java.time.Duration.ofMillis(_POLL_MILLISECONDS)
        self._topics = topics
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

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
            if names := departed(begun, self._group, members):
                admin.fenceProducers(names).all().get()
                logging.logger().warning("open transactions of departed instances aborted", instances=names)
        finally:
            admin.close()

    def close(self) -> None:
        """Leaves the group at once; call it outside of `held.holding`."""
        self._closed.set()
        self._thread.join(self._session_seconds)

    def assigned(self, given: Any) -> None:
        """Takes the assignment of a new generation; called by the consumer, within its poll."""
        self._consumer.pause(given)
        partitions: dict[str, list[int]] = {}
        for partition in given:
            partitions.setdefault(partition.topic(), []).append(partition.partition())
        self.held.take(Assignment(partitions, self._consumer.groupMetadata()) if partitions else None)

    def _run(self) -> None:
        try:
            self._consumer.subscribe(self._topics, _Listener(self))
            while not self._closed.is_set():
                self._consumer.poll(self._wait)
            self._consumer.close()
        except Exception as error:  # py4j wraps whatever Java raised
            failure = LozengeError(
                f"taking part in the group {self._group}: {summary(error)}",
                hint="check the broker and the rights of this principal; a restart joins the group again",
            )
            self.held.fail(failure)


def departed(begun: Iterable[str], group: str, members: Collection[str]) -> list[str]:
    """Of the transactional ids that have `begun` a transaction, those of instances that are no `members` of `group`."""
    return [name for name in begun if name.startswith(transactional_id(group, "")) and name not in members]


def transactional_id(app: str, instance: str) -> str:
    """That of an instance; no app's id begins as another's, since the name of an app has no full stop."""
    return f"{app}.{instance}"


class _Listener:
    """Java's view of a membership."""

    def __init__(self, membership: UpstreamMembership) -> None:
        self._membership = membership

    def onPartitionsRevoked(self, partitions: Any) -> None:
        self._membership.held.revoke()

    def onPartitionsLost(self, partitions: Any) -> None:
        self._membership.held.revoke()

    def onPartitionsAssigned(self, partitions: Any) -> None:
        self._membership.assigned(partitions)

    class Java:
        implements = ("org.apache.kafka.clients.consumer.ConsumerRebalanceListener",)
