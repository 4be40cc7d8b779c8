"""A bad day made of a good one: repeats, late and disordered arrival, hostile values."""

from collections.abc import Iterable
from random import Random

from lozenge.testing.events import Partial, Whole, events


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
