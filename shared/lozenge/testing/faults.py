"""Difficult input made of good input: repeats, late and disordered arrival, unexpected values."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from lozenge.testing.events import CompleteEvent, PartialEvent, events
from lozenge.testing.runner import AlertRecord

_MAX_DIVIDED = 6
"""How many alerting groups are divided by further batches, each of which costs a tenth of a second."""


def repeated(partials: Iterable[PartialEvent]) -> list[CompleteEvent]:
    """Every event twice in a row, as after a producer's retry."""
    return [event for event in events(partials) for _ in range(2)]


def late(partials: Iterable[PartialEvent]) -> list[CompleteEvent]:
    """The first event arrives last, with its own event time."""
    first, *others = events(partials)
    return [*others, first]


def shuffled(partials: Iterable[PartialEvent], seed: int = 1) -> list[CompleteEvent]:
    """The events in an order that does not depend on their times."""
    complete = events(partials)
    Random(seed).shuffle(complete)
    return complete


def hostile(card_id: str = "hostile") -> list[CompleteEvent]:
    """Events of one card with values that the schema allows and nobody expects. A detector processes them all."""
    values: list[PartialEvent] = [
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


def dividing_ends(events: Sequence[CompleteEvent], alerts: Sequence[AlertRecord]) -> Iterator[int]:
    """After how many events a batch ends between a group's threshold crossing and the last event that it counts.

    Which events a group counts is in no alert. Those are taken that have its entity in any field and are not later than
    the alert. The threshold crossing is at one of them: a batch ends before the last one, before the
    middle one and after it.
    """
    for alert in alerts[:_MAX_DIVIDED]:
        counted = [
            number
            for number, event in enumerate(events)
            if alert.entity in event.values() and event["event_time"] <= alert.event_time
        ]
        if counted:
            middle = counted[len(counted) // 2]
            yield from (counted[-1], middle, middle + 1)
