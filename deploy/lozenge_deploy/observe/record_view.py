"""A record for people, as data that prints as JSON. Whatever bytes it has, it is shown: nothing here raises."""

import json
from datetime import datetime
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from lozenge.contracts.avro import MAGIC, Codec, schema_id
from lozenge.contracts.schemas import packaged
from lozenge.errors import DecodeError
from lozenge.moments import written_at

MOST_NESTED = 64
"""Levels of a JSON value that are shown as data; a deeper one is shown as its text."""


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
        found = json.loads(value)
    except (ValueError, RecursionError, MemoryError):  # a number of thousands of digits is a ValueError
        return text(value)
    return found if _is_flat(found) else text(value)


def text(value: bytes | str | None) -> str | None:
    """Bytes as text, or else in hex."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def time_of(message: Message) -> str | None:
    """When a record was written, for people; None if it does not say so."""
    kind, milliseconds = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else written_at(milliseconds)


def _is_flat(value: Any) -> bool:
    """Whether its levels are few enough to be walked by functions that call themselves."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False


def _plain(record: Any) -> Any:
    """Times and decimals as text, so that it can be printed as JSON."""
    if isinstance(record, dict):
        return {name: _plain(value) for name, value in record.items()}
    if isinstance(record, list):
        return [_plain(value) for value in record]
    if isinstance(record, datetime):
        return record.isoformat()
    return record if isinstance(record, str | int | float | bool | None) else str(record)
