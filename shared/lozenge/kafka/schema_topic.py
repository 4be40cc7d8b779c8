"""How schema ids travel: announced in `lozenge.ctl.schemas.v1`, learned from there by running processes.

The topic is compacted, key = id, value = JSON `{id, name, version, schema}`. A writer announces a schema before its
first record with that id. A reader that meets an unknown id learns it here. No running process needs a registry.
"""

import json
from collections.abc import Iterable

from confluent_kafka import Producer

from lozenge.contracts.schemas import Schema
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions

DEADLINE_SECONDS = 10.0


def announce(kafka: KafkaSettings, schemas: Iterable[Schema]) -> None:
    """Publishes `schemas` and returns once the broker has them; raises BrokerUnavailable."""
    # No idempotent producer: it waits half a second for its id, and an announcement written twice is the same one.
    producer = Producer(kafka.client(acks="all", message_timeout_ms=10_000))
    topic, failures = kafka.topics.control.schemas, list[str]()
    for schema in schemas:
        value = {"id": schema.id, "name": schema.name, "version": schema.version, "schema": schema.text}
        producer.produce(
            topic,
            json.dumps(value).encode(),
            str(schema.id).encode(),
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    left = producer.flush(DEADLINE_SECONDS)
    if left or failures:
        raise BrokerUnavailable(
            f"announcing schemas in {topic}: {failures[0] if failures else 'no acknowledgement'}",
            hint=f"check that a broker runs at {kafka.bootstrap} and that the topic exists",
        )


def announced(kafka: KafkaSettings) -> list[Schema]:
    """Every announced version of every contract, by id; none if there is no such topic. Raises BrokerUnavailable."""
    if kafka.topics.control.schemas not in partitions(kafka):
        return []
    rows = [json.loads(stored.value) for stored in read_latest(kafka, kafka.topics.control.schemas)]
    found = [Schema(row["id"], row["name"], row["version"], row["schema"]) for row in rows]
    return sorted(found, key=lambda schema: schema.id)


def learn(kafka: KafkaSettings, name: str) -> list[Schema]:
    """Every announced version of the contract `name`, by id; empty if none was announced."""
    return [schema for schema in announced(kafka) if schema.name == name]
