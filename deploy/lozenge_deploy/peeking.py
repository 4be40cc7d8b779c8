"""The latest records of any topic, decoded for a person."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, TopicPartition

from lozenge.admin import partitions
from lozenge.avro import MAGIC, Codec
from lozenge.errors import BrokerUnavailable, DecodeError, UsageError
from lozenge.kafka import KafkaSettings

_CONTRACTS = ("event", "alert", "notification")
_CALL_SECONDS = 10.0


def latest(kafka: KafkaSettings, topic: str, count: int) -> Iterator[dict[str, Any]]:
    """The newest `count` committed records of each partition together, oldest first, at most `count` in all.

    Raises UsageError for a topic that does not exist, BrokerUnavailable.
    """
    existing = partitions(kafka)
    if topic not in existing:
        near = [name for name in sorted(existing) if topic in name]
        raise UsageError(
            f"looking into {topic}: there is no such topic", hint=f"there is {', '.join(near or existing)}"
        )
    consumer = Consumer(
        kafka.client(
            group_id="lozenge-peek",
            enable_auto_commit=False,
            isolation_level="read_committed",
            enable_partition_eof=True,
        )
    )
    try:
        found = list(_read(consumer, topic, existing[topic], count))
    except KafkaException as error:
        raise BrokerUnavailable(
            f"reading {topic}: {error.args[0].str()}", hint=f"check the broker at {kafka.bootstrap}"
        ) from error
    finally:
        consumer.close()
    found.sort(key=lambda message: message.timestamp()[1])
    for message in found[-count:]:
        kind, millis = message.timestamp()
        written = None if kind == TIMESTAMP_NOT_AVAILABLE else datetime.fromtimestamp(millis / 1000, UTC)
        yield {
            "partition": message.partition(),
            "offset": message.offset(),
            "time": written.isoformat(timespec="milliseconds") if written else None,
            "key": _text(message.key()),
            "value": decoded(message.value()),
            "headers": {name: _text(value) for name, value in message.headers() or ()},
        }


def _read(consumer: Consumer, topic: str, parts: int, count: int) -> Iterator[Any]:
    places = []
    for part in range(parts):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, part), timeout=_CALL_SECONDS)
        places.append(TopicPartition(topic, part, max(low, high - 2 * count)))  # commit markers take offsets too
    consumer.assign(places)
    unread = set(range(parts))
    deadline = time.monotonic() + _CALL_SECONDS
    while unread and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                yield message
            else:
                unread.discard(message.partition())


def decoded(value: bytes | None) -> Any:
    """A record's value as data: Avro of a contract, JSON, text, or else its bytes in hex; None for a tombstone."""
    if value is None:
        return None
    if value[:1] == bytes([MAGIC]):
        for name in _CONTRACTS:
            try:
                return _plain(Codec.of(name).decode(value))
            except DecodeError:
                continue
        return value.hex()
    try:
        return json.loads(value)
    except ValueError:
        return _text(value)


def _plain(record: Any) -> Any:
    """Times and decimals as text, so that it can be printed as JSON."""
    if isinstance(record, dict):
        return {name: _plain(value) for name, value in record.items()}
    if isinstance(record, list):
        return [_plain(value) for value in record]
    if isinstance(record, datetime):
        return record.isoformat()
    return record if isinstance(record, str | int | float | bool | None) else str(record)


def _text(value: bytes | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()
