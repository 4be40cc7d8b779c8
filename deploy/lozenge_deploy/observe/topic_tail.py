"""The latest records of any topic, decoded for people."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from lozenge.contracts.avro import MAGIC, Codec, schema_id
from lozenge.contracts.schemas import packaged
from lozenge.errors import DecodeError, UsageError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, tail


def latest(kafka: KafkaSettings, topic: str, count: int) -> Iterator[dict[str, Any]]:
    """The newest `count` committed records of each partition together, oldest first, at most `count` in all.

    Raises UsageError for a topic that does not exist, BrokerUnavailable.
    """
    existing = partitions(kafka)
    if topic not in existing:
        near = [name for name in sorted(existing) if topic in name]
        raise UsageError(
            f"reading {topic}: there is no such topic", hint=f"existing topics: {', '.join(near or existing)}"
        )
    settle_ids(kafka, ())
    found = tail(kafka, topic, bounds(kafka, topic, existing[topic]), count)
    found.sort(key=lambda message: message.timestamp()[1])
    for message in found[-count:]:
        kind, millis = message.timestamp()
        written = None if kind == TIMESTAMP_NOT_AVAILABLE else datetime.fromtimestamp(millis / 1000, UTC)
        yield {
            "partition": message.partition(),
            "offset": message.offset(),
            "time": written.isoformat(timespec="milliseconds") if written else None,
            "key": text(message.key()),
            "value": decoded(message.value()),
            "headers": {header[0]: text(header[1]) for header in message.headers() or ()},
        }


def decoded(value: bytes | None) -> Any:
    """A record's value as data: Avro of a contract, JSON, text, or else its bytes in hex; None for a tombstone."""
    if value is None:
        return None
    if value[:1] == bytes([MAGIC]):
        names = {schema.id: schema.name for schema in packaged()}
        try:
            return _plain(Codec.of(names[schema_id(value)]).decode(value))
        except (KeyError, DecodeError):
            return value.hex()
    try:
        return json.loads(value)
    except ValueError:
        return text(value)


def _plain(record: Any) -> Any:
    """Times and decimals as text, so that it can be printed as JSON."""
    if isinstance(record, dict):
        return {name: _plain(value) for name, value in record.items()}
    if isinstance(record, list):
        return [_plain(value) for value in record]
    if isinstance(record, datetime):
        return record.isoformat()
    return record if isinstance(record, str | int | float | bool | None) else str(record)


def text(value: bytes | str | None) -> str | None:
    """Bytes as text, or else in hex."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()
