"""A process that has the name of a dead one does not wait for the group to miss it."""

import contextlib
import multiprocessing
import os
import signal

import pytest
from confluent_kafka import Consumer

from lozenge.kafka.settings import KafkaSettings
from lozenge_downstream.ingest.stale_members import remove_stale_members
from tests.integration.harness import wait_for

pytestmark = pytest.mark.integration

SESSION_SECONDS = 300
"""Far longer than anything here waits."""
GROUP = "of-the-dead"


def member(kafka: KafkaSettings, name: str) -> Consumer:
    """One that has all partitions."""
    consumer = Consumer(kafka.client(group_id=GROUP, client_id=name, session_timeout_ms=SESSION_SECONDS * 1000))
    consumer.subscribe([kafka.topics.notifications])

    def has_all() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == kafka.topics.partitions

    wait_for(has_all, "all partitions")
    return consumer


def die_as_member(kafka: KafkaSettings, name: str) -> None:
    member(kafka, name)
    os.kill(os.getpid(), signal.SIGKILL)


def test_dead_members_of_the_same_name_leave_and_no_others(kafka: KafkaSettings) -> None:
    assert remove_stale_members(kafka, GROUP, "one") == 0, "there is no group yet"
    killed = multiprocessing.get_context("spawn").Process(target=die_as_member, args=(kafka, "one"))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert remove_stale_members(kafka, GROUP, "other") == 0
    assert remove_stale_members(kafka, GROUP, "one") == 1
    with contextlib.closing(member(kafka, "one")):
        assert remove_stale_members(kafka, GROUP, "other") == 0
