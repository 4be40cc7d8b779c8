"""The payments of creatures of habit, each when it is due; one far above the habit where that is requested."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from random import Random
from typing import NamedTuple

from lozenge_deploy.demo.feed.population import CEILING, DAY, Card, Merchant, Regular

ENOUGH = 22
"""After so many payments a detector should know the habit."""
LEAST_BREAK = 150
_PERIOD = 2 * DAY
_LEAST, _MOST = 3, 6


class HabitPayment(NamedTuple):
    """A payment that is due, in minor units; `broken` if it is far above the habit."""

    card: Card
    merchant: Merchant
    minor: int
    broken: bool


class Habits:
    """The next payment of every regular card. The first ones are spread over a period from `first` on."""

    def __init__(self, random: Random, regulars: Sequence[Regular], first: int) -> None:
        self._random = random
        self._requested = False
        self._payments: list[tuple[int, int, Regular]] = [
            (first + int(random.random() * _PERIOD), order, regular) for order, regular in enumerate(regulars)
        ]
        heapify(self._payments)

    def request_break(self, at: int) -> None:
        """The next payment of a card with a known habit breaks it; one that can do so pays now."""
        self._requested = True
        for index, (due, order, regular) in enumerate(self._payments):
            if regular.card.purchases >= ENOUGH and regular.card.available_at <= at:
                self._payments[index] = (min(due, at), order, regular)
                heapify(self._payments)
                return

    def next_due(self, at: int) -> HabitPayment | None:
        """The payment that is due at time `at`; None if there is none."""
        due, order, (card, merchant) = self._payments[0]
        if due > at:
            return None
        heapreplace(self._payments, (at + _PERIOD, order, Regular(card, merchant)))
        broken = self._requested and card.purchases >= ENOUGH
        least, most = (LEAST_BREAK, CEILING) if broken else (_LEAST, _MOST)
        self._requested = self._requested and not broken
        minor = int((least + (most - least) * self._random.random()) * 10**merchant.country.decimals)
        return HabitPayment(card, merchant, minor, broken)
