"""What a cache has of a topic, and what a store of caches promises."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from lozenge.errors import ConfigError, Retryable, first_line
from lozenge.protocol.data_subject import DataSubject

CALL_SECONDS = 10.0
"""How long a call waits for a server."""


class CacheUnavailable(Retryable):
    """The server of a cache does not answer, or not now."""

    exit_code = 3


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


class StoredEntry(NamedTuple):
    """An entry as a server has it, whose record is at `offset` of `partition`; times in Unix milliseconds.

    `value` is None for a key that was deleted. `expires_at` may be over where the server deletes later; None is never.
    """

    key: str
    value: str | None
    partition: int
    epoch: int
    offset: int
    at: int
    expires_at: int | None


class Lifetimes(NamedTuple):
    """How long an entry and the tombstone of a deleted one stay after their records; None is for ever."""

    entry: timedelta | None
    tombstone: timedelta

    def expires_at(self, entry: CacheEntry) -> int | None:
        """When an entry expires, in Unix milliseconds; None for never."""
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

    def delete_expired(self) -> int:
        """Deletes the entries that have expired, where the server does not do that itself; returns how many."""
        ...

    def erase(self, subject: DataSubject, *, dry_run: bool) -> int:
        """Deletes each entry whose key or value names a subject, and returns how many; a `dry_run` only counts.

        No tombstone is left, whose key would be the value. Nothing brings the entry back: an older record is read again
        only if the server has lost the position, and with it the deletion.
        """
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


class CacheReader(Protocol):
    """What a server has of one cache, for those who only look; it creates nothing there.

    Every method raises CacheUnavailable, and ConfigError for a server that refuses. Of a cache that never ran there is
    nothing.
    """

    def positions(self) -> dict[int, CachePosition]:
        """As `CacheStore.positions`."""
        ...

    def entry(self, key: str) -> StoredEntry | None:
        """The entry of a key, or None."""
        ...

    def entries(self) -> Iterator[StoredEntry]:
        """All of them in no order: each that is there from the beginning to the end, one or more times."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


def unavailable(name: str, error: Exception) -> CacheUnavailable:
    """Why a call of the server of the cache `name` may be repeated."""
    return CacheUnavailable(
        f"calling the server of the cache {name}: {first_line(error)}",
        hint="check that it runs and has room; a sink continues at its position",
    )


def refused(name: str, error: Exception) -> ConfigError:
    """Why the server of the cache `name` refuses a call for good."""
    return ConfigError(
        f"calling the server of the cache {name}: {first_line(error)}",
        hint="check the URL of the sink, and what its user may do; in PostgreSQL it creates the schema lozenge_cache",
    )


def latest(entries: Iterable[CacheEntry]) -> list[CacheEntry]:
    """The last entry of each key."""
    return list({entry.key: entry for entry in entries}.values())
