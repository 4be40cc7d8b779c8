"""A bad day made of a good one: repeats, late and disordered arrival, hostile values; and `check`, which tries them."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from lozenge.detector import Detector
from lozenge.loading import Loaded
from lozenge.testing.events import Partial, Whole, events
from lozenge.testing.running import Run, of, run

_BATCHES = {"stateful": (1, 7), "aggregate": (3,)}
"""Batch sizes that `check` tries beside all in one; a rule and a model see no batches."""


def repeated(partials: Iterable[Partial]) -> list[Whole]:
    """Every event a second time, directly after the first: a producer that tried again."""
    return [event for event in events(partials) for _ in range(2)]


def late(partials: Iterable[Partial]) -> list[Whole]:
    """The first event arrives last, with its own time."""
    first, *others = events(partials)
    return [*others, first]


def shuffled(partials: Iterable[Partial], seed: int = 1) -> list[Whole]:
    """The events in an order that has nothing to do with their times."""
    wholes = events(partials)
    Random(seed).shuffle(wholes)
    return wholes


def hostile(card_id: str = "hostile") -> list[Whole]:
    """Events of one card that the schema allows and nobody thinks of; a detector judges them all."""
    values: list[Partial] = [
        {"amount": "0"},
        {"amount": "-12.50"},
        {"amount": "99999999999999.9999"},
        {"currency": "JPY", "amount": "1200"},
        {"currency": "???"},
        {"account_id": None},
        {"merchant_id": "", "terminal_id": "", "mcc": "", "country": ""},
        {"merchant_id": "%s \u00e9\U0001f4b3 '\"\\"},
        {"channel": "other", "auth_result": "declined"},
        {"at": "-20000d"},
    ]
    return events({**value, "card_id": card_id, "event_id": f"hostile-{n}"} for n, value in enumerate(values))


def check(detector: Loaded | Detector[Any], partials: Sequence[Partial], **how: Any) -> Run:
    """Runs the events under faults too, and returns the undisturbed run for the caller to look at.

    Asserts that they raise an alert at all; that small batches tell what one batch tells, with the same
    ids; that a replay and repeated events tell nothing new; and that hostile events of another card
    neither fail nor change what is told of these. `how` goes to `run`. Takes a few seconds.
    """
    loaded = detector if isinstance(detector, Loaded) else of(detector)
    plain = run(loaded, partials, **how)
    assert plain, "these events raise no alert, so nothing is shown; use some that do"
    for size in _BATCHES.get(loaded.declaration.kind, ()):
        _same(plain, run(loaded, partials, batches=size, **how), f"batches of {size}")
    _same(plain, run(loaded, repeated(partials), **how), "every event twice")
    beset = run(loaded, [*hostile(), *events(partials)], **how)
    assert not beset.dead_letters, f"hostile events fail: {beset.dead_letters}"
    others = {event["event_id"] for event in hostile()}
    _same(plain, Run((alert for alert in beset if not others.intersection(alert.evidence)), ()), "hostile events")
    return plain


def _same(plain: Run, disturbed: Run, fault: str) -> None:
    lost = plain.told.items() - disturbed.told.items()
    added = disturbed.told.items() - plain.told.items()
    assert not lost, f"{fault}: lost {sorted(lost)}, told instead {sorted(added)}"
    assert not added, f"{fault}: told besides {sorted(added)}"
