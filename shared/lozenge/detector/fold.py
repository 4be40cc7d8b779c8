"""The fold: a stateful detector as a pure function per key, the same live, in tests and in a backtest.

    step(state, event, settings) -> alerts and timers      changes `state` in place
    on_timer(state, at, settings) -> alerts and timers

Contract, whatever the batches are and however often the job is started again:
- events of one input partition are folded in offset order;
- a key's clock is the largest event time it has seen, the partition's clock the largest of all its keys';
- a key's timers that are due by its next event's time fire before that event; a silent key is woken
  once the partition's clock has passed the timer by `grace`;
- an event is never dropped for being late;
- an event id among the last `REMEMBERED` of its key is a repeat and is ignored;
- an exception, or a state that cannot be stored, leaves the state as it was before that event and yields one
  `Failure`;
- a key that has been silent for more than `expires` (on its own clock), with no timer to come, starts
  without state; its state is dropped once the partition's clock has passed that moment by `grace`.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from lozenge.detector.events import Alert, Timer
from lozenge.detector.fold_checks import argument_problems, encode, restored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMEMBERED = 64
"""How many of its latest event ids a key remembers to recognise repeats."""
_DIGEST_BYTES = 8


class State(msgspec.Struct, kw_only=True, gc=False):
    """Base class of a fold's state: declare fields with types and defaults.

    Fields may be numbers, text, Decimal, datetime, lists, dictionaries or further State classes, and
    never lead back to themselves. A later release may add fields with defaults and drop fields; anything
    else needs `rebuild`.
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
    step: Callable[[S, Any, Any], Yields]
    expires: timedelta
    on_timer: Callable[[S, datetime, Any], Yields] | None = None
    grace: timedelta = timedelta(minutes=1)


def fold(
    events: "DataFrame",
    *,
    by: str | Iterable[str],
    state: type[S],
    step: Callable[[S, Any, Any], Yields],
    expires: timedelta,
    on_timer: Callable[[S, datetime, Any], Yields] | None = None,
    grace: timedelta = timedelta(minutes=1),
) -> Fold[S]:
    """A stateful detector: `step` over the events of each distinct value of the columns `by`.

    - `events`: the events that it folds; filter and join before.
    - `by`: one column or several. They must contain the detector's declared key, so that all events of one value are in
      one partition.
    - `state`: the class of the state of one value; each of its fields has a default.
    - `step(state, event, settings)`: changes `state` in place and yields alerts and timers. Its event is an `Event`, or
      of the class that `lozenge stream types` writes.
    - `expires`: bounds the state. A value without events for longer is forgotten, once its last timer has fired.
    - `on_timer(state, at, settings)`: called when a timer is due; yields as `step` does.
    - `grace`: how long after its time a timer waits, on the clock of its partition, for events that are late.

    Raises ValueError with everything that is wrong with these arguments.
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
    times = {"expires": expires, "grace": grace}
    if problems := [*argument_problems(columns, state, {"step": step, "on_timer": on_timer}, times)]:
        raise ValueError(f"fold(...): {'; '.join(problems)}")
    return Fold(events, columns, state, step, expires, on_timer, grace)


def expressions(result: "DataFrame | Fold[Any]") -> "DataFrame":
    """What Spark evaluates of what detect() returned: the DataFrame itself, or the fold's events."""
    return result.events if isinstance(result, Fold) else result


class Entry(msgspec.Struct, Generic[S], array_like=True, gc=False):
    """What is kept per key: the author's state, the key's clock, its pending timers, its latest event ids."""

    state: S
    clock: datetime
    timers: tuple[datetime, ...] = ()
    recent: bytes = b""


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
    """The author's code raised on `event`, or on the timer of `key` at `at` when event is None.

    `state` is the key's state before, as JSON; it still is its state.
    """

    key: Key
    event: Any | None
    at: datetime
    error: BaseException
    state: bytes


Outcome = Raised | Failure


class PartitionState(Generic[S]):
    """The fold over one input partition. Plain Python: no Spark, no Kafka, no clock but the events'."""

    def __init__(self, fold: Fold[S], settings: Any) -> None:
        self._fold, self._settings = fold, settings
        self._decoder = msgspec.json.Decoder(fold.state)
        self.entries: dict[Key, Entry[S]] = {}
        self.clock: datetime | None = None
        self._changed: dict[Key, bool] = {}  # since `changes` was last asked; whether the key was there then
        # When to look at which key: a marker for each pending timer, and one for each key's end. Only the
        # latter is renewed (True), so the agenda stays as small as the state.
        self._agenda: list[tuple[datetime, Key, bool]] = []

    def restore(self, key: Key, entry: Entry[S]) -> None:
        """Puts back an entry that was stored; the partition's clock follows the entries'."""
        self.entries[key] = entry
        if self.clock is None or entry.clock > self.clock:
            self.clock = entry.clock
        for at in entry.timers:
            heapq.heappush(self._agenda, (at, key, False))
        heapq.heappush(self._agenda, (self._end(entry), key, True))

    def adopt(self, before: "PartitionState[S]") -> None:
        """Takes the entries and the clock of another, whose changes have been stored."""
        for key, entry in before.entries.items():
            self.restore(key, entry)
        self.clock = before.clock

    def changes(self, *, all_dropped: bool = False) -> Iterator[tuple[Key, Entry[S] | None]]:
        """What to store since it was last asked: entries, and None for each that was stored and is dropped.

        With `all_dropped`, None also for those that were not stored, as far as is known here.
        """
        for key, was_there in self._changed.items():
            entry = self.entries.get(key)
            if entry is not None or was_there or all_dropped:
                yield key, entry
        self._changed.clear()

    def process(self, key: Key, event: Any) -> list[Outcome]:
        """Folds one event, which must come in offset order, after waking every silent key that is due."""
        outcomes: list[Outcome] = []
        now: datetime = event.event_time
        if self.clock is None or now > self.clock:
            self.clock = now
            self._wake_silent(now - self._fold.grace, outcomes)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(self._fold.state(), now)
            heapq.heappush(self._agenda, (self._end(entry), key, True))
            self._changed.setdefault(key, False)
        elif entry.timers:
            self._fire(key, entry, now, outcomes)
        if now > entry.clock:
            if not entry.timers and now - entry.clock > self._fold.expires:
                entry.state, entry.recent = self._fold.state(), b""
            # also for an event that fails: some entry must hold the partition's clock, or a restart would lose it
            entry.clock = now
            self._changed.setdefault(key, True)
        digest = blake2b(event.event_id.encode(), digest_size=_DIGEST_BYTES).digest()
        if not (entry.recent and _contains(entry.recent, digest)):
            self._call(key, entry, event, now, digest, outcomes)
        return outcomes

    def _wake_silent(self, limit: datetime, outcomes: list[Outcome]) -> None:
        while self._agenda and self._agenda[0][0] <= limit:
            due, key, is_end = heapq.heappop(self._agenda)
            entry = self.entries.get(key)
            if entry is None:
                continue
            if not is_end:
                self._fire(key, entry, due, outcomes)
            elif (end := self._end(entry)) <= due:
                del self.entries[key]
                self._changed.setdefault(key, True)
            else:
                heapq.heappush(self._agenda, (end, key, True))

    def _fire(self, key: Key, entry: Entry[S], until: datetime, outcomes: list[Outcome]) -> None:
        while entry.timers and entry.timers[0] <= until:
            at, entry.timers = entry.timers[0], entry.timers[1:]
            self._changed.setdefault(key, True)
            self._call(key, entry, None, at, b"", outcomes)

    def _call(
        self, key: Key, entry: Entry[S], event: Any | None, at: datetime, digest: bytes, outcomes: list[Outcome]
    ) -> None:
        """Runs the author's code for an event, or for the timer at `at`: all of its effects or none."""
        before = encode(entry.state)
        try:
            if event is not None:
                results = [_checked(r) for r in self._fold.step(entry.state, event, self._settings) or ()]
            elif self._fold.on_timer is not None:
                results = [_checked(r, at) for r in self._fold.on_timer(entry.state, at, self._settings) or ()]
            else:
                results = []
            restored(entry.state, self._decoder)
        except (Exception, SystemExit) as error:  # the author's code may raise anything
            entry.state = self._decoder.decode(before)
            outcomes.append(Failure(key, event, at, error, before))
            return
        entry.recent = (entry.recent + digest)[-REMEMBERED * _DIGEST_BYTES :]
        self._changed.setdefault(key, True)
        ordinal = 0
        for result in results:
            if isinstance(result, Alert):
                outcomes.append(Raised(key, result, event, at, ordinal))
                ordinal += 1
            elif result.at not in entry.timers:
                entry.timers = tuple(sorted((*entry.timers, result.at)))
                heapq.heappush(self._agenda, (result.at, key, False))

    def _end(self, entry: Entry[S]) -> datetime:
        """When the key is forgotten if nothing more happens."""
        expiry = entry.clock + self._fold.expires
        return max(expiry, entry.timers[-1]) if entry.timers else expiry


def key_bytes(values: Iterable[Any]) -> Key:
    """The key of one event, from the values of its `by` columns: the same bytes live, stored and in tests."""
    return encode(tuple(values))


def _checked(result: object, fired_at: datetime | None = None) -> Alert | Timer:
    """What the author's code yielded, if it is of use; `fired_at` is the timer that it was called for."""
    if isinstance(result, Alert):
        return result
    if not isinstance(result, Timer):
        raise TypeError(f"a fold yields Alert and Timer, not {type(result).__name__}")
    if result.at.tzinfo is None:
        raise ValueError("Timer(at) has no time zone; derive it from event.event_time")
    if fired_at is not None and result.at <= fired_at:
        raise ValueError(f"the timer at {fired_at.isoformat()} set one that is no later: it would fire for ever")
    return result


def _contains(recent: bytes, digest: bytes) -> bool:
    at = recent.find(digest)
    while at != -1 and at % _DIGEST_BYTES:
        at = recent.find(digest, at + 1)
    return at != -1
