"""How schema ids travel: announced in `lozenge.ctl.schemas.v1`, learned from there by running jobs.

The topic is compacted, key = id, value = JSON `{id, name, version, schema}`. A writer announces before
its first record; a reader that meets an unknown id learns it here. No job needs a registry to run.
"""

import json
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from lozenge.contracts.schemas import Schema
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings

DEADLINE_SECONDS = 10.0


def announce(kafka: KafkaSettings, schemas: Iterable[Schema]) -> None:
    """Publishes `schemas` and returns once the broker has them; raises BrokerUnavailable."""
    # one that is written twice is the same one, and an idempotent producer asks for its id half a second too late
    producer = Producer(kafka.client(acks="all", message_timeout_ms=10_000))
    failures: list[str] = []
    for schema in schemas:
        value = {"id": schema.id, "name": schema.name, "version": schema.version, "schema": schema.text}
        producer.produce(
            kafka.topics.schemas,
            json.dumps(value).encode(),
            str(schema.id).encode(),
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    left = producer.flush(DEADLINE_SECONDS)
    if left or failures:
        raise BrokerUnavailable(
            f"announcing schemas in {kafka.topics.schemas}: {failures[0] if failures else 'no acknowledgement'}",
            hint=f"check that a broker runs at {kafka.bootstrap} and that the topic exists",
        )


def learn(kafka: KafkaSettings, name: str) -> list[Schema]:
    """Every announced version of the contract `name`, by id; empty if none was announced."""
    consumer = Consumer(kafka.client(group_id="lozenge-schemas", enable_auto_commit=False))
    found: dict[int, Schema] = {}
    try:
        partition = TopicPartition(kafka.topics.schemas, 0)
        low, high = consumer.get_watermark_offsets(partition, timeout=DEADLINE_SECONDS)
        partition.offset = low
        consumer.assign([partition])
        deadline = time.monotonic() + DEADLINE_SECONDS
        position = low
        while position < high and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None or message.error():
                position = max(position, consumer.position([partition])[0].offset)
                continue
            position = (message.offset() or 0) + 1
            row = json.loads(message.value() or b"{}")
            if row.get("name") == name:
                found[row["id"]] = Schema(row["id"], name, row["version"], row["schema"])
    except KafkaException as error:
        raise BrokerUnavailable(
            f"reading {kafka.topics.schemas}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
        ) from error
    finally:
        consumer.close()
    return [found[key] for key in sorted(found)]
