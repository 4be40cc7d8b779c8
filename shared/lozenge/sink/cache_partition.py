"""Where a partition of a cached topic is read next, and what Kafka does not have of it yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Message

from lozenge.cache.entries import CachePosition
from lozenge.contracts.record import Record

WRITE_BYTES = 8 * 1024 * 1024
"""A write has no more, but for a single record that is larger."""


class Begin(NamedTuple):
    """Where a partition begins, and why there, if not at the position that was stored."""

    position: CachePosition
    problem: str = ""


def begin(stored: CachePosition | None, topic_id: str, bounds: tuple[int, int]) -> Begin:
    """Where a partition is read next. `bounds` are its earliest offset and its end."""
    earliest, end = bounds
    if stored is None:
        return Begin(CachePosition(topic_id, 1, earliest))
    again = CachePosition(topic_id, stored.epoch + 1, earliest)
    if stored.topic_id != topic_id:
        return Begin(again, "the topic was deleted and created again: it is cached from its beginning")
    if stored.offset > end:
        return Begin(again, f"the topic ends at {end}, before what was cached: it is cached from its beginning")
    if stored.offset < earliest:
        return Begin(
            stored._replace(offset=earliest),
            f"{earliest - stored.offset} offsets were deleted before they were cached",
        )
    return Begin(stored)


@dataclass
class OwnedPartition:
    """A partition of this instance.

    `stored` is what the store has, `position` what is read next. Dead letters of offsets below `reported` are in Kafka;
    `dead_letters` are of the offsets since.
    """

    stored: CachePosition | None
    position: CachePosition
    reported: int
    dead_letters: list[Record] = field(default_factory=list)

    def reached(self, offset: int) -> CachePosition:
        """Its position at another offset."""
        return self.position._replace(offset=offset)


def pieces(messages: Sequence[Message], end: int) -> Iterator[tuple[Sequence[Message], int]]:
    """The messages of a partition in parts of `WRITE_BYTES` at most, each with the offset that it reaches.

    The last one reaches `end`, also without messages.
    """
    begun, size = 0, 0
    for number, message in enumerate(messages):
        needs = len(message.value() or b"") + len(message.key() or b"")
        if size and size + needs > WRITE_BYTES:
            yield messages[begun:number], message.offset() or 0
            begun, size = number, 0
        size += needs
    yield messages[begun:], end
