"""How every topic of the platform's own is read: a record that is no row of it is logged and skipped.

Anybody who may write to a topic may have written anything. One such record must stop no reader, and takes the place of
no good one.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Message

from lozenge.process.logging import logger

T = TypeVar("T")
SKIPPED = Counter[str]()
"""How many records this process has skipped, by topic."""
_FIRST = 3
"""So many skipped records of a topic have a line of their own, and then each tenfold number has one."""


def row_of(message: Message, decode: Callable[[bytes, bytes], T]) -> T | None:
    """What `decode` makes of the key and the value of a record; None where it raises.

    The first of a topic are logged, with how many there were: a flood of them is no flood of lines.
    """
    try:
        return decode(message.key() or b"", message.value() or b"")
    except Exception as problem:  # whatever a decoder raises on bytes of others
        topic = str(message.topic())
        SKIPPED[topic] += 1
        if is_logged(SKIPPED[topic]):
            logger().warning(
                "record skipped: it is no row of its topic",
                topic=topic,
                partition=message.partition(),
                offset=message.offset(),
                problem=f"{type(problem).__name__}: {str(problem)[:200]}",
                skipped=SKIPPED[topic],
            )
        return None


def is_logged(number: int) -> bool:
    """Whether the record that is skipped as this `number` of its topic, from 1 on, has a line in the log."""
    return number <= _FIRST or str(number).rstrip("0") == "1"
