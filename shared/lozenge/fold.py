"""The fold: a stateful detector as a pure function per key, the same live, in tests and in a backtest.

    step(state, event, settings) -> alerts and timers      changes `state` in place
    on_timer(state, at, settings) -> alerts and timers

Contract, whatever the batches are:
- events of one slot (input partition) are folded in offset order;
- a key's timers that are due by its next event's time fire before that event; a silent key is woken
  once the slot's clock (its largest event time) has passed the timer by `grace`;
- an event is never dropped for being late; the key's clock is the largest event time it has seen;
- an event id among the last `REMEMBERED` of its key is a repeat and is ignored;
- an exception leaves the state as it was before that event and yields one `Failure`;
- a key without events for `expires` (on its own clock) starts afresh, and its state is dropped once
  the slot's clock has passed that moment by `grace`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from lozenge.records import Alert, Event, Timer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMEMBERED = 64
"""How many of its latest event ids a key remembers to recognise repeats."""
_DIGEST_BYTES = 8


class State(msgspec.Struct, kw_only=True):
    """Base class of a fold's state: declare fields with types and defaults.

    Fields may be numbers, text, Decimal, datetime, lists, dictionaries or further State classes. A later
    release may add fields with defaults and drop fields; anything else needs `rebuild`.
    """


S = TypeVar("S", bound=State)
Key = bytes
"""The values of a fold's `by` columns as JSON, see `key_bytes`."""
Yields = Iterable[Alert | Timer]


@dataclass(frozen=True)
class Fold(Generic[S]):
    """A fold over `events`; made by `fold(...)`, run by the platform."""

    events: "DataFrame"
    by: tuple[str, ...]
    state: type[S]
    step: Callable[[S, Event, Any], Yields]
    expires: timedelta
    on_timer: Callable[[S, datetime, Any], Yields] | None = None
    grace: timedelta = timedelta(minutes=1)


def fold(
    events: "DataFrame",
    *,
    by: str | Iterable[str],
    state: type[S],
    step: Callable[[S, Event, Any], Yields],
    expires: timedelta,
    on_timer: Callable[[S, datetime, Any], Yields] | None = None,
    grace: timedelta = timedelta(minutes=1),
) -> Fold[S]:
    """A stateful detector: `step` over the events of each distinct value of the columns `by`.

    `by` must contain the detector's declared key, so that one key lives in one slot. `expires` bounds
    the state: a key silent for longer is forgotten.
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
    return Fold(events, columns, state, step, expires, on_timer, grace)


class Entry(msgspec.Struct, Generic[S], array_like=True):
    """What is kept per key: the author's state, the key's clock, its pending timers, its latest event ids."""

    state: S
    clock: datetime
    timers: list[datetime]
    recent: bytes


@dataclass(frozen=True, slots=True)
class Raised:
    """An alert with its cause: the event, or the timer at `at`; `ordinal` counts alerts of one cause."""

    key: Key
    alert: Alert
    event: Any | None
    at: datetime
    ordinal: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The author's code raised on `event`, or on the timer of `key` at `at` when event is None."""

    key: Key
    event: Any | None
    at: datetime
    error: Exception


Outcome = Raised | Failure


class Slot(Generic[S]):
    """The fold over one input partition. Plain Python: no Spark, no Kafka, no clock but the events'.

    `changed` collects the keys whose entry was written or dropped since it was last cleared.
    """

    def __init__(self, fold: Fold[S], settings: Any) -> None:
        self._fold, self._settings = fold, settings
        self.entries: dict[Key, Entry[S]] = {}
        self.changed: set[Key] = set()
        self.clock: datetime | None = None
        self._agenda: list[tuple[datetime, int, Key]] = []
        self._pushed = 0

    def restore(self, key: Key, entry: Entry[S]) -> None:
        """Puts back an entry that was stored; the slot's clock follows the entries'."""
        self.entries[key] = entry
        if self.clock is None or entry.clock > self.clock:
            self.clock = entry.clock
        self._schedule(key, entry)

    def advance(self, key: Key, event: Any) -> Iterator[Outcome]:
        """Folds one event, which must come in offset order, after waking every silent key that is due."""
        now: datetime = event.event_time
        if self.clock is None or now > self.clock:
            self.clock = now
            yield from self._wake_silent(now)
        entry = self.entries.get(key)
        if entry is not None:
            if entry.timers:
                yield from self._fire(key, entry, now)
            if now - entry.clock > self._fold.expires:
                entry = None
        digest = blake2b(event.event_id.encode(), digest_size=_DIGEST_BYTES).digest()
        if entry is None:
            entry = Entry(self._fold.state(), now, [], b"")
        elif _contains(entry.recent, digest):
            return
        before = msgspec.msgpack.encode(entry.state)
        try:
            results = list(self._fold.step(entry.state, event, self._settings) or ())
        except Exception as error:  # the author's code may raise anything
            entry.state = msgspec.msgpack.decode(before, type=self._fold.state)
            yield Failure(key, event, now, error)
            return
        entry.recent = entry.recent[-(REMEMBERED - 1) * _DIGEST_BYTES :] + digest
        entry.clock = max(entry.clock, now)
        self._keep(key, entry)
        yield from self._results(key, entry, event, now, results)

    def _wake_silent(self, now: datetime) -> Iterator[Outcome]:
        limit = now - self._fold.grace
        while self._agenda and self._agenda[0][0] <= limit:
            _, _, key = heapq.heappop(self._agenda)
            entry = self.entries.get(key)
            if entry is None:
                continue
            yield from self._fire(key, entry, limit)
            if entry.clock + self._fold.expires <= limit:
                del self.entries[key]
                self.changed.add(key)
            else:
                self._schedule(key, entry)

    def _fire(self, key: Key, entry: Entry[S], until: datetime) -> Iterator[Outcome]:
        handler = self._fold.on_timer
        while entry.timers and entry.timers[0] <= until:
            at = entry.timers.pop(0)
            self.changed.add(key)
            if handler is None:
                continue
            before = msgspec.msgpack.encode(entry.state)
            try:
                results = list(handler(entry.state, at, self._settings) or ())
            except Exception as error:  # the author's code may raise anything
                entry.state = msgspec.msgpack.decode(before, type=self._fold.state)
                yield Failure(key, None, at, error)
                continue
            entry.clock = max(entry.clock, at)
            yield from self._results(key, entry, None, at, results)

    def _results(
        self, key: Key, entry: Entry[S], event: Any | None, at: datetime, results: Iterable[Alert | Timer]
    ) -> Iterator[Outcome]:
        ordinal = 0
        for result in results:
            if isinstance(result, Timer):
                if result.at not in entry.timers:
                    entry.timers.append(result.at)
                    entry.timers.sort()
                    self._push(result.at, key)
            else:
                yield Raised(key, result, event, at, ordinal)
                ordinal += 1

    def _keep(self, key: Key, entry: Entry[S]) -> None:
        self.changed.add(key)
        if self.entries.get(key) is not entry:
            self.entries[key] = entry
            self._schedule(key, entry)

    def _schedule(self, key: Key, entry: Entry[S]) -> None:
        """Puts the key's next wake-up on the agenda: one marker per key, renewed when it comes up."""
        expiry = entry.clock + self._fold.expires
        self._push(min(entry.timers[0], expiry) if entry.timers else expiry, key)

    def _push(self, due: datetime, key: Key) -> None:
        self._pushed += 1  # breaks ties, so that keys are never compared
        heapq.heappush(self._agenda, (due, self._pushed, key))


def key_bytes(values: Iterable[Any]) -> Key:
    """The key of one event, from the values of its `by` columns: the same bytes live, stored and in tests."""
    return msgspec.json.encode(tuple(values))


def _contains(recent: bytes, digest: bytes) -> bool:
    at = recent.find(digest)
    while at != -1 and at % _DIGEST_BYTES:
        at = recent.find(digest, at + 1)
    return at != -1
