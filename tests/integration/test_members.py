"""A process that has the name of a dead one does not wait for the group to miss it."""

import contextlib
import multiprocessing
import os
import signal

import pytest
from confluent_kafka import Consumer

from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_downstream.ingest.stale_members import remove_stale_members
from tests.integration.conftest import Broker
from tests.integration.harness import wait_for

TOPICS = Topics()

pytestmark = pytest.mark.integration

SESSION_SECONDS = 300
"""Far longer than anything here waits."""
GROUP = "of-the-dead"


def member(kafka: KafkaSettings, name: str) -> Consumer:
    """One that has all partitions."""
    consumer = Consumer(kafka.client(group_id=GROUP, client_id=name, session_timeout_ms=SESSION_SECONDS * 1000))
    consumer.subscribe([TOPICS.notifications])

    def has_all() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == TOPICS.partitions

    wait_for(has_all, "all partitions")
    return consumer


def die_as_member(bootstrap: str, name: str) -> None:
    member(KafkaSettings(bootstrap=bootstrap), name)
    os.kill(os.getpid(), signal.SIGKILL)


def test_dead_members_of_the_same_name_leave_and_no_others(broker: Broker) -> None:
    kafka = KafkaSettings(bootstrap=broker.bootstrap)
    ensure_topics(kafka, TOPICS.platform_topics())
    assert remove_stale_members(kafka, GROUP, "one") == 0, "there is no group yet"
    killed = multiprocessing.get_context("spawn").Process(target=die_as_member, args=(broker.bootstrap, "one"))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert remove_stale_members(kafka, GROUP, "other") == 0
    assert remove_stale_members(kafka, GROUP, "one") == 1
    with contextlib.closing(member(kafka, "one")):
        assert remove_stale_members(kafka, GROUP, "other") == 0
