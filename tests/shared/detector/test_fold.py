"""The fold's contract: its alerts do not depend on batches or restarts, and every clause holds by itself."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lozenge import Alert, Event, Fold, State, Timer, fold
from lozenge.detector.events import event_type
from lozenge.detector.fold import REMEMBERED, Entry, Failure, Key, Outcome, PartitionState, Raised, key_bytes

START = datetime(2024, 5, 14, 12, 0, tzinfo=UTC)
POISON = 13
_Plain = event_type(("event_id", "event_time", "card_id", "amount"))


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def event(event_id: str, minutes: float = 0, card: str = "a", amount: int = 1) -> Any:
    return _Plain(event_id, at(minutes), card, Decimal(amount))


class Tally(State):
    count: int = 0
    total: Decimal = Decimal(0)
    last: datetime | None = None


def step(tally: Tally, event: Event, _: None) -> Iterator[Alert | Timer]:
    """Emits an alert for every third event; sets a timer for each; spoils its state before it fails."""
    tally.count += 1
    tally.total += event.amount
    tally.last = event.event_time
    if event.amount == POISON:
        raise ValueError("unlucky")
    if tally.count % 3 == 0:
        yield Alert(reason=f"{tally.count} events, {tally.total}")
        yield Alert(reason="and a second alert")
    yield Timer(event.event_time + timedelta(minutes=10 + int(event.amount)))


def on_timer(tally: Tally, fired_at: datetime, _: None) -> Iterator[Alert | Timer]:
    """Emits an alert for each timer, and sets one more after an even number of events."""
    yield Alert(reason=f"silent since {tally.last}, {tally.count} events")
    if tally.count % 2 == 0:
        tally.count += 1
        yield Timer(fired_at + timedelta(minutes=7))


def tallying(**changes: Any) -> Fold[Tally]:
    how: dict[str, Any] = {"step": step, "on_timer": on_timer, "expires": timedelta(minutes=30), **changes}
    return fold(None, by="card_id", state=Tally, **how)  # type: ignore[arg-type]  # no DataFrame is looked at


def advance(slot: PartitionState[Tally], *events: Any) -> list[Outcome]:
    return [outcome for e in events for outcome in slot.process(key_bytes([e.card_id]), e)]


def reasons(outcomes: Iterable[Outcome]) -> list[str]:
    return [outcome.alert.reason for outcome in outcomes if isinstance(outcome, Raised)]


def visible(outcome: Outcome) -> tuple[object, ...]:
    cause = outcome.event and outcome.event.event_id
    if isinstance(outcome, Failure):
        return outcome.key, cause, outcome.at, str(outcome.error)
    return outcome.key, cause, outcome.at, outcome.alert.reason, outcome.ordinal


class Store:
    """What a state topic holds: the last bytes of every key that changed."""

    def __init__(self) -> None:
        self.values: dict[Key, bytes] = {}

    def save(self, slot: PartitionState[Tally]) -> None:
        for key, entry in slot.changes():
            if entry is None:
                del self.values[key]
            else:
                self.values[key] = msgspec.json.encode(entry)

    def slot(self, how: Fold[Tally]) -> PartitionState[Tally]:
        slot = PartitionState(how, None)
        for key, value in self.values.items():
            slot.restore(key, msgspec.json.decode(value, type=Entry[Tally]))
        return slot


def with_restarts(how: Fold[Tally], events: Sequence[Any], size: int) -> list[Outcome]:
    """Batches of `size`; before each one the state is restored from what was stored."""
    store, outcomes = Store(), list[Outcome]()
    for start in range(0, len(events), size):
        slot = store.slot(how)
        outcomes += advance(slot, *events[start : start + size])
        store.save(slot)
    return outcomes


_EVENTS = st.lists(
    st.builds(
        event,
        event_id=st.integers(0, 40).map(str),
        minutes=st.integers(-60, 240) | st.floats(0, 60, width=16),
        card=st.sampled_from("abc"),
        amount=st.integers(0, 15),
    ),
    max_size=40,
)


@given(_EVENTS)
@settings(max_examples=150, deadline=None)
def test_batches_and_restarts_change_nothing(events: list[Any]) -> None:
    how = tallying()
    plain = [visible(outcome) for outcome in advance(PartitionState(how, None), *events)]
    for size in (1, 7, 1000):
        assert [visible(outcome) for outcome in with_restarts(how, events, size)] == plain, f"batches of {size}"


@given(_EVENTS)
@settings(max_examples=50, deadline=None)
def test_a_key_emits_the_same_alerts_with_and_without_other_keys(events: list[Any]) -> None:
    how = tallying(on_timer=None, expires=timedelta(days=1))
    among = [visible(o) for o in advance(PartitionState(how, None), *events) if o.key == key_bytes("a")]
    alone = [visible(o) for o in advance(PartitionState(how, None), *(e for e in events if e.card_id == "a"))]
    assert among == alone


def test_due_timers_fire_before_the_next_event() -> None:
    slot = PartitionState(tallying(), None)
    outcomes = advance(slot, event("1", 0), event("2", 11), event("3", 12))
    causes = [(o.at, o.event and o.event.event_id) for o in outcomes]
    assert causes == [(at(11), None), (at(12), "3"), (at(12), "3")]
    assert [o.ordinal for o in outcomes if isinstance(o, Raised)] == [0, 0, 1]


def test_a_timer_of_an_idle_key_fires_once_the_partition_has_passed_it_by_the_grace() -> None:
    slot = PartitionState(tallying(grace=timedelta(minutes=2)), None)
    advance(slot, event("1", 0, card="a"))
    assert advance(slot, event("2", 12.9, card="b")) == []
    [woken] = advance(slot, event("3", 13, card="b"))
    assert (woken.key, woken.at, woken.event) == (key_bytes("a"), at(11), None)


def test_timers_of_all_keys_fire_in_order_of_time() -> None:
    slot = PartitionState(tallying(), None)
    advance(slot, event("1", 0, card="b", amount=3), event("2", 0, card="a", amount=2), event("3", 0, card="c"))
    assert [o.at for o in advance(slot, event("4", 20, card="d"))] == [at(11), at(12), at(13)]


def test_a_late_event_is_folded() -> None:
    slot = PartitionState(tallying(), None)
    assert reasons(advance(slot, event("1", 60), event("2", 60, amount=2), event("3", -500)))[0] == "3 events, 4"


def test_expiry_is_on_the_keys_own_clock_and_starts_from_scratch() -> None:
    slot = PartitionState(tallying(on_timer=None), None)
    advance(slot, event("1", 0), event("2", 0))
    assert reasons(advance(slot, event("3", 30)))[0] == "3 events, 3"  # silent for exactly 30 minutes
    assert reasons(advance(slot, event("4", 61), event("5", 61), event("6", 61)))[0] == "3 events, 3"


def test_state_is_dropped_once_the_partition_has_passed_its_expiry_by_the_grace() -> None:
    slot = PartitionState(tallying(on_timer=None), None)
    advance(slot, event("1", 0), event("2", 30.9, card="b"))
    assert [key for key, _ in slot.changes()] == [key_bytes("a"), key_bytes("b")]
    advance(slot, event("3", 31, card="b"))
    assert key_bytes("a") not in slot.entries
    assert (key_bytes("a"), None) in slot.changes()


def test_what_was_never_stored_is_not_dropped_from_the_store() -> None:
    slot = PartitionState(tallying(on_timer=None), None)
    advance(slot, event("1", 0), event("2", 31, card="b"))
    assert key_bytes("a") not in slot.entries
    assert [key for key, _ in slot.changes()] == [key_bytes("b")]


def test_a_key_with_a_timer_to_come_is_kept_until_it_has_fired() -> None:
    slot = PartitionState(tallying(expires=timedelta(minutes=5)), None)
    advance(slot, event("1", 0))
    assert advance(slot, event("2", 11.5, card="b")) == []
    assert reasons(advance(slot, event("3", 12, card="b"))) == [f"silent since {at(0)}, 1 events"]
    assert key_bytes("a") not in slot.entries


def test_repeats_are_ignored_up_to_the_limit() -> None:
    slot = PartitionState(tallying(on_timer=None), None)
    advance(slot, *(event(str(n)) for n in range(REMEMBERED + 1)))
    entry = slot.entries[key_bytes("a")]
    before = entry.state.count
    assert advance(slot, event(str(REMEMBERED)), event("1")) == []
    assert entry.state.count == before
    advance(slot, event("0"))  # one more than it remembers ago
    assert entry.state.count == before + 1


def test_an_exception_leaves_the_state_and_is_reported_once() -> None:
    slot = PartitionState(tallying(), None)
    advance(slot, event("1"))
    before = msgspec.json.encode(slot.entries[key_bytes("a")])
    [failure] = advance(slot, event("2", amount=POISON))
    assert isinstance(failure, Failure)
    assert failure.event is not None
    assert (failure.event.event_id, str(failure.error)) == ("2", "unlucky")
    assert msgspec.json.encode(slot.entries[key_bytes("a")]) == before


def test_a_failed_event_may_come_again() -> None:
    slot = PartitionState(tallying(), None)
    assert len(advance(slot, event("1", amount=POISON), event("1", amount=POISON))) == 2


def test_the_clock_of_a_partition_survives_a_restart_after_a_failed_event() -> None:
    store, how = Store(), tallying()
    slot = PartitionState(how, None)
    advance(slot, event("1", 0), event("2", 90, card="b", amount=POISON))
    store.save(slot)
    assert store.slot(how).clock == slot.clock == at(90)


@pytest.mark.parametrize(
    ("results", "complaint"),
    [(["an alert"], "yields Alert and Timer, not str"), ([Timer(datetime(2024, 5, 14))], "no time zone")],
)
def test_what_a_step_yields_is_checked(results: list[Any], complaint: str) -> None:
    [failure] = advance(PartitionState(tallying(step=lambda *_: results), None), event("1"))
    assert isinstance(failure, Failure)
    assert complaint in str(failure.error)


def test_a_timer_that_would_fire_for_ever_is_a_failure() -> None:
    slot = PartitionState(tallying(on_timer=lambda tally, fired_at, _: [Timer(fired_at)]), None)
    [failure] = advance(slot, event("1", 0), event("2", 60, card="b"))
    assert isinstance(failure, Failure)
    assert failure.event is None
    assert "for ever" in str(failure.error)


def test_the_agenda_does_not_outgrow_the_state() -> None:
    slot = PartitionState(tallying(expires=timedelta(days=30)), None)
    for n in range(2000):
        advance(slot, event(str(n), n, card="ab"[n % 2]))
    timers = sum(len(entry.timers) for entry in slot.entries.values())
    stale = 2 * 12  # markers of timers that fired before their key's own event, within the grace
    assert len(slot._agenda) <= timers + len(slot.entries) + stale
