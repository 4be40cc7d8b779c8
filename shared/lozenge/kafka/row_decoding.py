"""How every topic of the platform's own is read: a record that is no row of it is logged and skipped.

Anybody who may write to a topic may have written anything. One such record must stop no reader, and takes the place of
no good one.
"""

from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Message

from lozenge.process.logging import logger

T = TypeVar("T")


def row_of(message: Message, decode: Callable[[bytes, bytes], T]) -> T | None:
    """What `decode` makes of the key and the value of a record; None where it raises, which is logged."""
    try:
        return decode(message.key() or b"", message.value() or b"")
    except Exception as problem:  # whatever a decoder raises on bytes of others
        logger().warning(
            "record skipped: it is no row of its topic",
            topic=message.topic(),
            partition=message.partition(),
            offset=message.offset(),
            problem=f"{type(problem).__name__}: {str(problem)[:200]}",
        )
        return None
