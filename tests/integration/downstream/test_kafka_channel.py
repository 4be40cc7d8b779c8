"""The channel to a Kafka topic of somebody's own, with a real broker."""

import asyncio
import time
from uuid import uuid4

import pytest

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_downstream.channels.base.channel import Message, Result, Retry, Sent
from lozenge_downstream.channels.kafka import Channel
from tests.brokers import Broker

DEADLINE_SECONDS = 60.0
MESSAGE = Message("n1", "{}", {"case_id": "c1"})


def test_a_missing_topic_is_named_and_what_waits_is_sent_once_it_is_there(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_KAFKA_BOOTSTRAP", broker.bootstrap)
    topic = f"theirs.{uuid4().hex}"
    channel = Channel(type="kafka", topic=topic, timeout=4)

    async def sending() -> list[Result]:
        async with channel.sender() as sender:
            refused = [await sender.send(MESSAGE), await sender.send(MESSAGE)]
            await asyncio.to_thread(ensure_topics, KafkaSettings.load(), [Topic(topic, 1)])
            deadline = time.monotonic() + DEADLINE_SECONDS
            while isinstance(last := await sender.send(MESSAGE), Retry) and time.monotonic() < deadline:
                await asyncio.sleep(0.5)
            return [*refused, last]

    first, second, last = asyncio.run(sending())
    for refused in (first, second):
        assert isinstance(refused, Retry)
        assert refused.error.startswith(f"there is no topic {topic}: ")
    assert last == Sent()
