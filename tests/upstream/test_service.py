"""Upstream says what it needs and has not, before it starts Spark."""

import socket
from functools import partial

import pytest

from lozenge.errors import BrokerUnavailable, TopicError
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge_upstream.service import checked_partitions
from tests.upstream.samples import ISO, JSON


def test_without_a_broker_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_admin, "partitions", partial(topic_admin.partitions, timeout=0.2))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        kafka = KafkaSettings(bootstrap=f"127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(BrokerUnavailable, match="no Kafka broker answers"):
            checked_partitions(kafka, [JSON], ())


def test_a_mapping_without_its_topic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_admin, "partitions", lambda kafka: {ISO.topic: 4})
    other = JSON.model_copy(update={"topic": "acme.NOWHERE", "source": "other"})
    with pytest.raises(TopicError, match=r"there is no acme.NOWHERE \(source other\)"):
        checked_partitions(KafkaSettings(bootstrap="kafka:9092"), [ISO, other], ())
