"""Names, options and offsets as Spark and Java get them; what they do with them is an integration test."""

from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.internals import driver_jvm
from lozenge_upstream.streaming import transactional_producer
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer

KAFKA = KafkaSettings(bootstrap="kafka:9092", topic_prefix="acme.")
JAVA_KAFKA = SimpleNamespace(
    common=SimpleNamespace(TopicPartition=lambda topic, partition: (topic, partition)),
    clients=SimpleNamespace(consumer=SimpleNamespace(OffsetAndMetadata=lambda offset, text: (offset, text))),
)


class PooledProducer:
    """What `SinkProducer` is to the code under test."""

    def __init__(self, spark: Any, name: str, options: dict[str, str]) -> None:
        self.name, self.options = name, options
        self.sent: list[Any] = []
        self.java = SimpleNamespace(sendOffsetsToTransaction=lambda *sent: self.sent.append(sent))


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> list[PooledProducer]:
    """The producers made in this test."""
    made: list[PooledProducer] = []

    def make(*arguments: Any) -> PooledProducer:
        made.append(PooledProducer(*arguments))
        return made[-1]

    java = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(kafka=JAVA_KAFKA)))
    monkeypatch.setattr(transactional_producer, "SinkProducer", make)
    monkeypatch.setattr(driver_jvm, "java", lambda spark: java)
    return made


def made_by(generation: object = "generation 3") -> TransactionalProducer:
    spark: Any = None
    return TransactionalProducer(spark, KAFKA, "upstream-one", generation)


def test_the_transactional_id_is_the_platforms(pooled: list[PooledProducer]) -> None:
    producer = made_by()
    assert (producer.name, producer.bootstrap) == ("upstream-one", "kafka:9092")
    assert pooled[0].name == pooled[0].options["kafka.transactional.id"] == "acme.upstream-one"
    assert pooled[0].options["kafka.acks"] == "all"


@pytest.mark.parametrize(
    ("metadata", "text"),
    [(CommitMetadata(), "0/-/-1\0"), (CommitMetadata(output_ahead=True), "0/-/-1/ahead\0")],
    ids=["none", "ahead"],
)
def test_offsets_go_with_their_metadata_under_the_generation(
    pooled: list[PooledProducer], metadata: CommitMetadata, text: str
) -> None:
    made_by().send_offsets({"AUTH-JSON": {"0": 7, "1": 8}, "AUTH-ISO": {"0": 1}}, metadata)
    offsets = {("AUTH-JSON", 0): (7, text), ("AUTH-JSON", 1): (8, text), ("AUTH-ISO", 0): (1, text)}
    assert pooled[0].sent == [(offsets, "generation 3")]
