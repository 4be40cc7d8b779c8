"""Which raw partitions this instance works on. Kafka's own group protocol decides that, nothing of ours.

An instance joins the consumer group with a consumer that fetches nothing. What that is assigned is the instance's,
until Kafka takes it back to give it to another one. Each assignment has a generation, and the broker refuses a
transaction that moves the group's offsets under an older one (KIP-447): that is the fence between instances.

An instance that dies loses its partitions after `SESSION_SECONDS`. One that is asked to give them back ends its
batch first, and while it does the others wait.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge_upstream.streaming.query_errors import gist

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
class Slots:
    """What one generation of the group gave to this instance; `generation` is Java's own token of it."""

    partitions: Mapping[str, Collection[int]]
    generation: Any


class Membership:
    """The place of instance `name` in a group that reads `topics`; its thread keeps it until `close`."""

    def __init__(self, spark: SparkSession, kafka: KafkaSettings, group: str, name: str, topics: list[str]) -> None:
        jvm: Any = spark._jvm
        ensure_callback_server_started(cast(Any, spark.sparkContext)._gateway)  # type: ignore[no-untyped-call]
        self._group, self._settings = group, kafka.java()
        self._admin = jvm.org.apache.kafka.clients.admin.Admin
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            {**self._settings, **_SETTINGS, "group.id": group, "client.id": name}
        )
        self._wait = jvm.java.time.Duration.ofMillis(_POLL_MILLISECONDS)
        self._topics = topics
        self._slots: Slots | None = None
        self._held = threading.Lock()
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    @contextmanager
    def holding(self) -> Iterator[Slots | None]:
        """The slots that are this instance's, None if there are none. Nobody else gets them within the block.

        So it has to end soon after `wanted_back`. Raises what ended the membership, if anything did.
        """
        with self._held:
            if self._failure is not None:
                raise self._failure
            yield self._slots

    def wanted_back(self, slots: Slots) -> bool:
        """Whether `slots` are to be given to others, or already are."""
        return self._slots is not slots

    def fence_departed(self) -> None:
        """Ends the transactions that instances have left open which are no longer in the group.

        Their transactional ids are the names by which they were members. Before that nobody can tell where the
        group stands, and readers of committed records wait.
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
                logging.logger().warning("took back what an instance left open", instances=departed)
        finally:
            admin.close()

    def close(self) -> None:
        """Gives the slots to the other instances at once; call it outside of `holding`."""
        self._closed.set()
        self._thread.join(SESSION_SECONDS)

    # called by the consumer, within its poll

    def revoked(self) -> None:
        """Returns when nobody works on the slots any more."""
        self._slots = None
        with self._held:
            pass

    def assigned(self, places: Any) -> None:
        """The slots of a new generation."""
        self._consumer.pause(places)
        partitions: dict[str, list[int]] = {}
        for place in places:
            partitions.setdefault(place.topic(), []).append(place.partition())
        self._slots = Slots(partitions, self._consumer.groupMetadata()) if partitions else None

    def _run(self) -> None:
        try:
            self._consumer.subscribe(self._topics, _Listener(self))
            while not self._closed.is_set():
                self._consumer.poll(self._wait)
            self._consumer.close()
        except Exception as error:  # py4j's, for whatever Java raised
            self._slots = None
            self._failure = LozengeError(
                f"taking part in the group {self._group}: {gist(error)}",
                hint="check the broker and what this principal may do there; a restart joins the group again",
            )


class _Listener:
    """Java's view of a membership."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def onPartitionsRevoked(self, places: Any) -> None:
        self._membership.revoked()

    def onPartitionsLost(self, places: Any) -> None:
        self._membership.revoked()

    def onPartitionsAssigned(self, places: Any) -> None:
        self._membership.assigned(places)

    class Java:
        implements = ("org.apache.kafka.clients.consumer.ConsumerRebalanceListener",)
