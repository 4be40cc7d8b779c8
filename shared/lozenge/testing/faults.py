"""A bad day made of a good one: repeats, late and disordered arrival, hostile values; and `check`, which tries them."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from lozenge.detector import Detector
from lozenge.loading import Loaded
from lozenge.testing.events import Partial, Whole, events
from lozenge.testing.running import Run, run

BATCHES = (1, 7, 1000, None)


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
    """Runs the events under faults and returns the undisturbed run, whose alerts the caller looks at.

    Asserts that it raises something at all; that batches of 1, 7 and 1000 tell what one batch tells, with
    the same ids; that repeats tell nothing new; and that hostile events on another card neither fail nor
    change what is told of this one. `how` goes to `run`.
    """
    plain = run(detector, partials, **how)
    assert plain, "these events raise no alert, so nothing is shown; use some that do"
    for size in BATCHES[:-1]:
        _same(plain, run(detector, partials, batches=size, **how), f"batches of {size}")
    _same(plain, run(detector, repeated(partials), **how), "every event twice")
    card = {event["card_id"] for event in events(partials)}
    beset = run(detector, [*hostile(), *events(partials)], **how)
    assert not beset.dead_letters, f"these become dead letters: {beset.dead_letters}"
    _same(plain, Run([alert for alert in beset if alert.entity in card], []), "hostile events on another card")
    return plain


def _same(plain: Run, disturbed: Run, fault: str) -> None:
    lost = [reason for alert_id, reason in plain.told.items() if alert_id not in disturbed.told]
    added = [reason for alert_id, reason in disturbed.told.items() if alert_id not in plain.told]
    assert plain.told == disturbed.told, f"{fault}: lost {lost}, added {added}, or other reasons"
