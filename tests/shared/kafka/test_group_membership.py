"""When a member gives up a revoked partition: at once, or when it has stopped working on it. No broker is asked."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from lozenge.kafka import group_membership
from lozenge.kafka.group_membership import Membership
from lozenge.kafka.settings import KafkaSettings


class Consumer:
    """What the group has left to this member; `gave_up` is set with every partition that it gives up."""

    def __init__(self, *_: object) -> None:
        self.partitions: set[int] = set()
        self.gave_up = threading.Event()

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.partitions |= {p.partition for p in partitions}

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Its records come to Spark."""

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.partitions -= {p.partition for p in partitions}
        self.gave_up.set()


class Member:
    """A membership, and the thread in which Kafka's client calls it."""

    def __init__(self) -> None:
        self.membership = Membership(KafkaSettings(bootstrap="127.0.0.1:1"), "group", ["events"])
        self.consumer: Any = self.membership._consumer

    def assign(self, *partitions: int) -> None:
        self.membership._assigned(self.consumer, [TopicPartition("events", p) for p in partitions])

    def revoke(self, *partitions: int) -> None:
        """Returns at once: the client waits in a thread of its own."""
        revoked = [TopicPartition("events", p) for p in partitions]
        threading.Thread(target=self.membership._revoked, args=(self.consumer, revoked), daemon=True).start()


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Iterator[Member]:
    monkeypatch.setattr(group_membership, "Consumer", Consumer)
    one = Member()
    yield one
    one.membership._given_up.set()


def test_a_partition_that_came_and_went_is_given_up_at_once(member: Member) -> None:
    """Else the group waits a minute for a member that does not work on it."""
    member.assign(1)
    member.membership.settle()
    member.assign(2)
    member.revoke(2)
    assert member.consumer.gave_up.wait(5)
    assert member.consumer.partitions == {1}
    assert member.membership.partitions == {("events", 1)}


def test_a_partition_that_is_worked_on_is_given_up_when_the_work_is_settled(member: Member) -> None:
    member.assign(1, 2)
    member.membership.settle()
    member.revoke(2)
    assert not member.consumer.gave_up.wait(0.05), "the batch under way may still commit"
    assert member.membership.settle() == {("events", 1)}
    assert member.consumer.gave_up.wait(5)
    assert member.consumer.partitions == {1}


def test_partitions_of_both_kinds_are_given_up_together(member: Member) -> None:
    member.assign(1)
    member.membership.settle()
    member.assign(2)
    member.revoke(1, 2)
    assert not member.consumer.gave_up.wait(0.05)
    assert member.membership.settle() == frozenset()
    assert member.consumer.gave_up.wait(5)
