"""One process among several that share the partitions of topics: Kafka's own group protocol divides them.

Whoever joins gets a share; the shares of one that leaves go to the others at once, those of one that dies or stands
still `SESSION_SECONDS` later. Only what moves changes hands. A member stops working on a share before it gives it up,
so its successor begins at what it committed last; should it not stop in time, whatever fences writers must refuse it.
"""

import threading
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger

SESSION_SECONDS = 6.0
"""A member that the broker has not heard for so long has lost its shares; brokers allow no less by default."""
GIVE_UP_SECONDS = 60.0
"""How long a share is waited for that is to be given up."""
_POLL_SECONDS = 0.1

PartitionState = tuple[str, int]
"""Topic and partition."""


class Membership:
    """A member of `group` from `join` to `leave`; reads no record and commits nothing.

    Used by one thread; the group is followed in another one, which gives nothing up before `settle` was called.
    """

    def __init__(
        self, kafka: KafkaSettings, group: str, topics: Iterable[str], session_seconds: float = SESSION_SECONDS
    ) -> None:
        self._topics = list(topics)
        self._consumer = Consumer(
            kafka.client(
                group_id=group,
                enable_auto_commit=False,
                partition_assignment_strategy="cooperative-sticky",
                session_timeout_ms=int(session_seconds * 1000),
                heartbeat_interval_ms=int(session_seconds * 1000 / 6),
            )
        )
        self._slots: frozenset[PartitionState] = frozenset()
        self._leaving: frozenset[PartitionState] = frozenset()
        self._changing = threading.Lock()  # what is to be given up and what is left change as one
        self._given_up = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="membership", daemon=True)

    def join(self) -> None:
        """Asks for a share; it comes some seconds later."""
        self._consumer.subscribe(self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self._thread.start()

    def leave(self) -> None:
        """Gives all up, for the others to take at once; call it when nothing of it is worked on."""
        self._given_up.set()
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    @property
    def slots(self) -> frozenset[PartitionState]:
        """What this member is to work on; where it differs from what `settle` returned, it has to settle again."""
        return self._slots

    def settle(self) -> frozenset[PartitionState]:
        """Says that it works on nothing now, so that what has to be given up can be; returns what to work on next."""
        with self._changing:
            if self._leaving:
                self._given_up.set()
            return self._slots

    def _follow(self) -> None:
        while not self._ends.is_set():
            try:
                self._consumer.poll(_POLL_SECONDS)
            except KafkaException as error:
                logger().warning(f"following the group: {error.args[0].str()}", hint="it goes on by itself")
                time.sleep(_POLL_SECONDS)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # its records come to Spark
        self._slots |= _slots(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._changing:
            self._given_up.clear()
            self._leaving = _slots(partitions)
            self._slots -= self._leaving
        if not self._ends.is_set() and not self._given_up.wait(GIVE_UP_SECONDS):
            logger().warning("giving up shares that are still worked on", slots=sorted(self._leaving))
        self._leaving = frozenset()
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Others have them already: whoever works on them still is fenced."""
        self._slots -= _slots(partitions)
        consumer.incremental_unassign(partitions)


def _slots(partitions: Iterable[TopicPartition]) -> frozenset[PartitionState]:
    return frozenset((p.topic, p.partition) for p in partitions)
