"""Instances share the raw partitions; what a member of an older generation still writes is refused."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.errors import Fenced, LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_upstream.streaming.group_membership import UpstreamMembership, transactional_id
from lozenge_upstream.streaming.held_assignment import Assignment
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer
from lozenge_upstream.streaming.transactional_sink import Sink
from tests.integration.harness import group_offsets, wait_for
from tests.integration.upstream.upstream_bench import Bench
from tests.streams import RAW_JSON

SESSION_SECONDS = 2.0
ALL = range(4)
FENCED = r"ProducerFenced|InvalidProducerEpoch"


class Group:
    """A group of upstream's instances in this process, on one raw topic."""

    def __init__(self, bench: Bench, spark: SparkSession, closing: ExitStack) -> None:
        self.bench = bench
        self.name, self.topic = f"group-{uuid4().hex[:8]}", bench.topics.prefixed(RAW_JSON)
        self._spark, self._closing = spark, closing

    def join(self, name: str) -> "Instance":
        """A new instance, which leaves at the end of the test at the latest."""
        instance = Instance(self, self._spark, transactional_id(self.name, name))
        self._closing.callback(instance.membership.close)
        return instance

    def offset(self, partition: int) -> int:
        return group_offsets(self.bench.kafka, self.name, self.topic)[partition][0]

    def values(self) -> list[bytes]:
        return sorted(record.value for record in self.bench.written(self.bench.topics.events("auth")))


class Instance:
    """A member with its producers."""

    def __init__(self, group: Group, spark: SparkSession, name: str) -> None:
        self._group, self._spark, self._name = group, spark, name
        self._kafka = group.bench.kafka
        self.membership = UpstreamMembership(
            spark, self._kafka, group.name, name, [group.topic], session_seconds=SESSION_SECONDS
        )

    def assignment(self) -> Assignment | None:
        with self.membership.held.holding() as assignment:
            return assignment

    def has(self, count: int) -> Callable[[], bool]:
        def found() -> bool:
            assignment = self.assignment()
            return len(assignment.partitions[self._group.topic] if assignment else ()) == count

        return found

    def given(self, count: int) -> Assignment:
        """Its assignment, once it has so many partitions."""
        wait_for(self.has(count), f"{count} partitions")
        assignment = self.assignment()
        assert assignment is not None
        return assignment

    def producer(self, assignment: Assignment) -> TransactionalProducer:
        return TransactionalProducer(self._spark, self._kafka, self._name, assignment.generation)

    def rows(self, value: bytes) -> DataFrame:
        topic = self._group.bench.topics.events("auth")
        return self._spark.createDataFrame([(topic, 0, bytearray(value))], "topic string, partition int, value binary")


@pytest.fixture
def group(bench: Bench, spark: SparkSession) -> Iterator[Group]:
    with ExitStack() as closing:
        yield Group(bench, spark, closing)


def test_a_rebalance_waits_for_the_batch_and_fences_what_comes_after_it(group: Group) -> None:
    first = group.join("first")
    before = first.given(4)
    assert set(before.partitions[group.topic]) == set(ALL)
    sink = Sink(first.producer(before))
    with first.membership.held.holding():
        second = group.join("second")
        wait_for(lambda: first.membership.held.is_revoked(before), "the revocation")
        assert second.assignment() is None, "it would work on partitions of a running batch"
        sink.commit(first.rows(b"completed"), {group.topic: {"0": 10}}, CommitMetadata())
    halves = [first.given(2), second.given(2)]
    assert {p for half in halves for p in half.partitions[group.topic]} == set(ALL)

    with pytest.raises(Fenced, match="other instances own its partitions now"):
        sink.commit(first.rows(b"too late"), {group.topic: {"0": 20}}, CommitMetadata())
    assert (group.values(), group.offset(0)) == ([b"completed"], 10)
    assert not group.bench.open()
    sink.close()

    with closing(Sink(first.producer(halves[0]))) as sink:
        sink.commit(first.rows(b"of the new generation"), {group.topic: {"0": 30}}, CommitMetadata())
    assert (group.values(), group.offset(0)) == ([b"completed", b"of the new generation"], 30)

    second.membership.close()
    assert second.assignment() is None
    first.given(4)


def test_open_transactions_of_departed_instances_are_aborted_and_those_of_members_are_not(group: Group) -> None:
    producers = {}
    members = {name: group.join(name) for name in ("staying", "departing")}
    for name, instance in members.items():
        producers[name] = instance.producer(instance.given(2))
        producers[name].claim()
        producers[name].begin()
        producers[name].send(instance.rows(name.encode()))
    producers["staying"].send_offsets({group.topic: {"0": 5}}, CommitMetadata())
    producers["departing"].send_offsets({group.topic: {"1": 7}}, CommitMetadata())
    members["departing"].membership.close()
    members["staying"].given(4)

    members["staying"].membership.fence_departed()
    with pytest.raises(Exception, match=FENCED):
        producers["departing"].commit()
    producers["staying"].commit()
    assert group.values() == [b"staying"]
    for producer in producers.values():
        producer.close()


def test_a_membership_that_cannot_be_had_ends_the_work_with_one_sentence(
    group: Group, spark: SparkSession, kafka: KafkaSettings
) -> None:
    with closing(UpstreamMembership(spark, kafka, group.name, "", [""], session_seconds=SESSION_SECONDS)) as membership:

        def hold_for_ever() -> None:
            while True:
                with membership.held.holding():
                    time.sleep(0.01)

        with pytest.raises(LozengeError, match=f"taking part in the group {kafka.topics.prefixed(group.name)}"):
            hold_for_ever()
