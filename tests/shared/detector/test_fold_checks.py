"""A fold is refused before it runs if it cannot, and no event leaves a state that a restart could not read."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest

from lozenge import Alert, State, fold
from lozenge.detector.events import event_type
from lozenge.detector.fold import Entry, Failure, PartitionState, Raised, key_bytes
from lozenge.detector.fold_checks import column_problems

_Plain = event_type(("event_id", "event_time", "amount"))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Mean(State):
    count: int = 0
    mean: float = 0.0
    latest: datetime | None = None
    seen: set[str] = msgspec.field(default_factory=set)
    by_day: dict[str, Decimal] = msgspec.field(default_factory=dict)
    bits: int = 0


def folded(step: Any, *amounts: str) -> tuple[PartitionState[Mean], list[Any]]:
    slot = PartitionState(fold(None, by="card_id", state=Mean, step=step, expires=timedelta(days=1)), None)  # type: ignore[arg-type]
    events = [_Plain(f"e{n}", NOON + timedelta(seconds=n), Decimal(amount)) for n, amount in enumerate(amounts)]
    return slot, [outcome for event in events for outcome in slot.process(key_bytes("a"), event)]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("mean", float("nan"), "Expected `float`, got `null` - at `$.mean`; NaN and infinity are stored as null"),
        ("mean", float("inf"), "NaN and infinity are stored as null"),
        ("mean", "much", "Expected `float`, got `str`"),
        ("count", 0.5, "Expected `int`, got `float`"),
        ("count", Decimal("0.5"), "Expected `int`, got `str`"),
        ("count", np.int64(5), "numpy.int64"),
        ("latest", NOON.date(), "Invalid RFC3339"),
        ("by_day", {(2026, 3): Decimal(1)}, "keys"),
        ("seen", {object()}, "object"),
    ],
)
def test_an_event_that_leaves_a_state_which_cannot_be_stored_fails_alone(field: str, value: Any, why: str) -> None:
    def step(state: Mean, event: Any, _: None) -> Iterator[Alert]:
        state.count += 1
        state.seen.add(event.event_id)
        if event.amount == 13:
            setattr(state, field, value)
        yield Alert(reason=f"{state.count}")

    slot, outcomes = folded(step, "1", "13", "2")
    assert [type(outcome) for outcome in outcomes] == [Raised, Failure, Raised]
    assert "its state cannot be stored: " in str(outcomes[1].error)
    assert why in str(outcomes[1].error)
    assert outcomes[2].alert.reason == "2", "the failed event has left no trace"
    [(_, entry)] = slot.changes()
    again = msgspec.json.decode(msgspec.json.encode(entry), type=Entry[Mean])
    assert again == entry
    assert again.state.seen == {"e0", "e2"}


def test_whatever_a_state_declares_and_json_holds_is_stored() -> None:
    def step(state: Mean, event: Any, _: None) -> list[Alert]:
        state.bits |= 1 << 100
        state.latest = event.event_time
        state.by_day["2026-03-01"] = Decimal("0.1") + event.amount
        state.mean = 1  # an int is a float
        return []

    slot, outcomes = folded(step, "1", "2")
    assert outcomes == []
    assert slot.entries[key_bytes("a")].state.bits == 1 << 100


def test_a_step_that_ends_the_process_fails_on_its_event_alone() -> None:
    def step(state: Mean, event: Any, _: None) -> list[Alert]:
        state.count += 1
        if event.amount == 13:
            raise SystemExit(1)
        return [Alert(reason=f"{state.count}")]

    _, outcomes = folded(step, "13", "1")
    assert [type(outcome) for outcome in outcomes] == [Failure, Raised]
    assert outcomes[1].alert.reason == "1"


class Required(State):
    count: int


class Wrong(State):
    count: int = 0.5  # type: ignore[assignment]


@dataclass
class Plain:
    count: int = 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"by": ()}, "by is (), which are no names of columns"),
        ({"by": ["card_id", 3]}, "by is ('card_id', 3)"),
        ({"step": None}, "step is NoneType, not a function"),
        ({"on_timer": 5}, "on_timer is int, not a function"),
        ({"expires": 3600}, "expires is int, not timedelta(...)"),
        ({"expires": -timedelta(days=1)}, "expires is -1 day, 0:00:00: it lies between"),
        ({"expires": timedelta.max}, "and 36500 days"),
        ({"grace": timedelta(-1)}, "grace is -1 day"),
        ({"state": Plain}, "not a class that derives from lozenge.State"),
        ({"state": dict}, "not a class that derives from lozenge.State"),
        ({"state": Required}, "state is Required: Missing required argument 'count'"),
        ({"state": Wrong}, "state is Wrong: its state cannot be stored: Expected `int`, got `float`"),
        ({"state": dict, "expires": 1}, "expires is int, not timedelta(...); state is "),
    ],
)
def test_arguments_that_cannot_work_are_refused_all_at_once(given: dict[str, Any], why: str) -> None:
    how: dict[str, Any] = {"by": "card_id", "state": Mean, "step": lambda *_: (), "expires": timedelta(days=1)}
    with pytest.raises(ValueError, match=r"^fold\(\.\.\.\): ") as refused:
        fold(None, **how | given)  # type: ignore[arg-type]
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("more", "by", "problems"),
    [
        (["mcc"], ["card_id"], []),
        (["mcc", "mcc"], ["card_id"], ["its events have the column mcc more than once"]),
        (
            ["risk score", "class", "_rank"],
            ["card_id"],
            ["no event has an attribute of the name 'risk score', 'class', '_rank'"],
        ),
        ([], ["card_id", "contry"], ["by names contry, and its events have no such column"]),
    ],
)
def test_columns_that_no_event_can_have_are_named(more: list[str], by: list[str], problems: list[str]) -> None:
    assert [*column_problems(["event_id", "event_time", "card_id", *more], by)] == problems


def test_columns_that_every_event_has_must_be_kept() -> None:
    assert [*column_problems(["event_id", "card_id"], ["card_id"])] == ["its events have lost the column event_time"]
