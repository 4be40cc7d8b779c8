"""One process among several that share the partitions of topics, which Kafka's group protocol assigns.

A new member is assigned partitions. Those of a member that leaves go to the others at once, those of one that dies or
hangs `SESSION_SECONDS` later. Assignment is cooperative: only partitions that move are revoked. A member stops working
on a partition before it gives it up, so the next owner starts at its last commit. If it does not stop in time, the
fence of its writer refuses what it still writes.
"""

import threading
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lozenge.contracts.record import Partition
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger

SESSION_SECONDS = 6.0
"""A member without a heartbeat for so long loses its partitions; brokers allow no less by default."""
GIVE_UP_SECONDS = 60.0
"""How long a revoked partition may still be worked on before it is given up."""
_POLL_SECONDS = 0.1


class Membership:
    """A member of `group` from `join` to `leave`; reads no record and commits nothing.

    Used by one thread; the group is followed in another one, which gives up nothing that `settle` has returned before
    `settle` was called again.
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
        self._partitions: frozenset[Partition] = frozenset()
        self._leaving: frozenset[Partition] = frozenset()
        self._worked_on: frozenset[Partition] = frozenset()
        self._changing = threading.Lock()  # what is to be given up and what is left change as one
        self._given_up = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="membership", daemon=True)

    def join(self) -> None:
        """Joins the group; the assignment comes some seconds later."""
        self._consumer.subscribe(self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self._thread.start()

    def leave(self) -> None:
        """Leaves the group, so that the others get its partitions at once; call it when no partition is worked on."""
        self._given_up.set()
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    @property
    def partitions(self) -> frozenset[Partition]:
        """What this member is to work on; where it differs from what `settle` returned, it has to settle again."""
        return self._partitions

    def settle(self) -> frozenset[Partition]:
        """Says that it works on nothing now, so that what has to be given up can be; returns what to work on next."""
        with self._changing:
            if self._leaving:
                self._given_up.set()
            self._worked_on = self._partitions
            return self._partitions

    def _follow(self) -> None:
        while not self._ends.is_set():
            try:
                self._consumer.poll(_POLL_SECONDS)
            except KafkaException as error:
                logger().warning(f"following the group: {error.args[0].str()}", hint="the client tries again by itself")
                time.sleep(_POLL_SECONDS)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # its records come to Spark
        self._partitions |= _topic_partitions(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._changing:
            self._given_up.clear()
            self._leaving = _topic_partitions(partitions)
            self._partitions -= self._leaving
            worked_on = self._leaving & self._worked_on  # what came and went between two calls of `settle` is free
        if worked_on and not self._ends.is_set() and not self._given_up.wait(GIVE_UP_SECONDS):
            logger().warning("giving up partitions that are still worked on", partitions=sorted(self._leaving))
        self._leaving = frozenset()
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Others own them already: what this process still writes for them is fenced."""
        self._partitions -= _topic_partitions(partitions)
        consumer.incremental_unassign(partitions)


def _topic_partitions(partitions: Iterable[TopicPartition]) -> frozenset[Partition]:
    return frozenset((p.topic, p.partition) for p in partitions)
