"""What a cache has of a topic, and what a store of caches promises."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from lozenge.errors import Retryable

SETTLE_SECONDS = 10.0
"""How long a call waits for a server."""


class CacheUnavailable(Retryable):
    """The server of a cache does not answer, or not now."""


class CachePosition(NamedTuple):
    """How far a partition is cached: the offset to be read next, of which topic.

    The `epoch` rises with each topic of that name, whose offsets begin again. Of two entries of a key the one with
    the larger `(epoch, offset)` is newer.
    """

    topic_id: str
    epoch: int
    offset: int


class CacheEntry(NamedTuple):
    """A key with the JSON of its record, or None for a key that was deleted; `at` is in Unix milliseconds."""

    key: str
    value: str | None
    offset: int
    at: int


class Lifetimes(NamedTuple):
    """How long an entry and the tombstone of a deleted one stay after their records; None is for ever."""

    entry: timedelta | None
    tombstone: timedelta

    def until(self, entry: CacheEntry) -> int | None:
        """When an entry is forgotten, in Unix milliseconds."""
        kept = self.tombstone if entry.value is None else self.entry
        return None if kept is None else entry.at + int(kept.total_seconds() * 1000)


class CacheStore(Protocol):
    """A server that has the entries of one cache, and the position of each partition.

    Every method raises CacheUnavailable; a call that raised may be repeated.
    """

    def positions(self) -> dict[int, CachePosition]:
        """How far each partition is cached; none of what never was, or was lost."""
        ...

    def write(
        self, partition: int, seen: CachePosition | None, reached: CachePosition, entries: Sequence[CacheEntry]
    ) -> bool:
        """Writes entries that are newer than those of their keys, and the position, as one.

        `entries` have each key once, and offsets of the epoch of `reached`. False, and nothing is written, if the
        position is not `seen`: another process has written, or the server has lost what it had.
        """
        ...

    def forget(self) -> int:
        """Deletes entries whose time is over, where the server does not do that itself; returns how many."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


def latest(entries: Iterable[CacheEntry]) -> list[CacheEntry]:
    """The last entry of each key."""
    return list({entry.key: entry for entry in entries}.values())
