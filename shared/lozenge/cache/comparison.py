"""Whether a store has the latest record of each key of a topic, up to the positions that the store has. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes, StoredEntry
from lozenge.cache.json_values import digest

NAMED = 5
"""How many keys of a kind of difference are named."""
GRACE_MILLISECONDS = 5_000
"""By so much the clock of a server may differ from ours: an entry that is about to expire need not be there."""


class KeyDifference(StrEnum):
    """How a key of a store differs from its topic."""

    MISSING = "missing"
    OLDER = "older"
    DIFFERING = "differing"
    SURPLUS = "surplus"


@dataclass
class Differing:
    """How many keys differ in one way, and the first of them, each with why."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Counts one more."""
        self.count += 1
        if self.count <= NAMED:
            self.examples.append(example)


@dataclass(frozen=True)
class CacheProof:
    """What was found: how many keys are `right`, and how the others differ.

    `expired` ones need not be there. Of `newer` ones the store has a later record than it had when the comparison
    began. The records of `unchecked` ones are no longer in the topic.
    """

    right: int
    expired: int
    newer: int
    unchecked: int
    differences: Mapping[KeyDifference, Differing]

    @property
    def clean(self) -> bool:
        """Whether no key differs."""
        return not any(each.count for each in self.differences.values())

    @property
    def problems(self) -> list[str]:
        """What is wrong, for a person."""
        return [
            f"{each.count} {what}: {', '.join(each.examples)}{' ...' if each.count > NAMED else ''}"
            for what, each in self.differences.items()
            if each.count
        ]


class _Latest(NamedTuple):
    """The latest record of a key; no `digest` for one that deletes it."""

    partition: int
    offset: int
    expires_at: int | None
    digest: bytes | None


class CacheComparison:
    """Takes the entries of a topic's records, then those of the store. It keeps some 200 bytes for each key."""

    def __init__(
        self, positions: Mapping[int, CachePosition], earliest: Mapping[int, int], lifetimes: Lifetimes
    ) -> None:
        """`positions` are those of the partitions to compare; the topic has nothing before the `earliest` offsets."""
        self._positions, self._earliest, self._lifetimes = positions, earliest, lifetimes
        self._latest: dict[str, _Latest] = {}
        self._done, self._later = set[str](), set[str]()
        self._counts = dict.fromkeys(("right", "expired", "newer", "unchecked"), 0)
        self._differences = {each: Differing() for each in KeyDifference}

    def take_record(self, partition: int, entry: CacheEntry) -> None:
        """The entry of a record below the position of its partition, in the order of the offsets."""
        found = digest(entry.value) if entry.value is not None else None
        self._latest[entry.key] = _Latest(partition, entry.offset, self._lifetimes.expires_at(entry), found)

    def take_later(self, entry: CacheEntry) -> None:
        """The entry of a record behind the position: a compacted topic may have none of its key before that."""
        self._later.add(entry.key)

    def take_stored(self, entries: Sequence[StoredEntry], now: int) -> None:
        """Entries of the store at Unix milliseconds `now`, after all records; one that comes again is passed over."""
        for entry in entries:
            if entry.key not in self._done:
                self._done.add(entry.key)
                self._compare(entry, now)

    def proof(self, now: int) -> CacheProof:
        """What was found, at Unix milliseconds `now`."""
        for key, latest in self._latest.items():
            if key in self._done or latest.digest is None:
                continue
            if latest.expires_at is not None and latest.expires_at <= now + GRACE_MILLISECONDS:
                self._counts["expired"] += 1
            else:
                self._differ(KeyDifference.MISSING, key, latest)
        return CacheProof(**self._counts, differences=self._differences)

    def _compare(self, has: StoredEntry, now: int) -> None:
        position, latest = self._positions.get(has.partition), self._latest.get(has.key)
        if position is None or (has.epoch, has.offset) >= (position.epoch, position.offset):
            self._counts["newer"] += 1
        elif latest is None:
            self._compare_alone(has, position, now)
        elif (has.epoch, has.offset) < (self._positions[latest.partition].epoch, latest.offset):
            self._differ(KeyDifference.OLDER, has.key, latest, has)
        elif has.offset == latest.offset and _same(has, latest):
            self._counts["right"] += 1
        else:
            self._differ(KeyDifference.DIFFERING, has.key, latest, has)

    def _compare_alone(self, has: StoredEntry, position: CachePosition, now: int) -> None:
        """A key that no record of the topic has."""
        if has.value is None or (has.expires_at is not None and has.expires_at <= now):
            return
        compacted = has.key in self._later
        if compacted or has.epoch < position.epoch or has.offset < self._earliest[has.partition]:
            self._counts["unchecked"] += 1
        else:
            self._differ(KeyDifference.SURPLUS, has.key, None, has)

    def _differ(self, what: KeyDifference, key: str, latest: _Latest | None, has: StoredEntry | None = None) -> None:
        of_topic = f"topic {latest.partition}:{latest.offset}" if latest is not None else ""
        of_store = f"store {has.partition}:{has.offset}" if has is not None else ""
        self._differences[what].add(f"{key} ({', '.join(filter(None, (of_topic, of_store)))})")


def _same(has: StoredEntry, latest: _Latest) -> bool:
    return (digest(has.value) if has.value is not None else None) == latest.digest
