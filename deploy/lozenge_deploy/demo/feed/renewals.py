"""The charges of subscriptions, each when it is due, at a higher price where an increase is requested."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from random import Random
from typing import NamedTuple

from lozenge_deploy.demo.feed.population import DAY, Subscription

EQUAL_PERIODS = 3
"""After so many equal charges a higher one is an increase that a detector should find."""
_EARLY_RENEWAL = DAY


class Renewal(NamedTuple):
    """A charge of a subscription that is due; `increased` if it is a requested increase."""

    subscription: Subscription
    increased: bool


class Renewals:
    """The next charge of every subscription. The first ones are spread over a period from `first` on."""

    def __init__(self, random: Random, subscriptions: Sequence[Subscription], first: int) -> None:
        self._random = random
        self._increase_requested = False
        self._charges: list[tuple[int, int, Subscription]] = [
            (first + int(random.random() * subscription.period), order, subscription)
            for order, subscription in enumerate(subscriptions)
        ]
        heapify(self._charges)

    def request_increase(self, at: int) -> None:
        """The next renewal that can show an increase does so. One that is due within a day is moved to now."""
        self._increase_requested = True
        for index, (due, order, subscription) in enumerate(self._charges):
            if subscription.equal >= EQUAL_PERIODS and due <= at + _EARLY_RENEWAL:
                self._charges[index] = (min(due, at), order, subscription)
                heapify(self._charges)
                return

    def next_due(self, at: int) -> Renewal | None:
        """The renewal that is due at time `at`, with its present price; None if there is none."""
        due, order, subscription = self._charges[0]
        if due > at:
            return None
        heapreplace(self._charges, (at + subscription.period, order, subscription))
        increased = self._increase_requested and subscription.equal >= EQUAL_PERIODS
        if increased:
            self._increase_requested = False
            subscription.rise(self._random)
        subscription.equal += 1
        return Renewal(subscription, increased)
