"""The injected cases: what each detector should find, and nothing that another one should.

A case is one record or several; those after the first are scheduled, and the last one completes it.
"""

from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from lozenge_deploy.demo.feed.charges import Charges
from lozenge_deploy.demo.feed.formats import Authorisation, Login
from lozenge_deploy.demo.feed.habits import Habits
from lozenge_deploy.demo.feed.population import COOLDOWN, DAY, SECOND, Population
from lozenge_deploy.demo.feed.renewals import Renewals
from lozenge_deploy.demo.feed.written_records import Raw, WrittenRecords

VELOCITY = "card_velocity"
DUPLICATE = "duplicate_charge"
LARGE = "large_amount"
INCREASE = "recurring_price_increase"
TRAVEL = "impossible_travel"
DEVICE = "shared_device"
ATTACK = "merchant_under_attack"
HABIT = "habit_deviation"
TAKEOVER = "account_takeover"
"""Where there are logins."""
KINDS = (VELOCITY, DUPLICATE, LARGE, INCREASE, TRAVEL, DEVICE, ATTACK, HABIT)

LARGE_FROM = 3000
_BURST = (14, 18)
_CARDS_OF_DEVICE = (5, 7)
_CARDS_OF_ATTACK = (19, 22)
_APPROVED_OF_ATTACK = 9
_FAILURES_OF_TAKEOVER = (3, 5)
_STOPPED = 365 * DAY
"""A card that was copied is stopped."""


class Tempo(NamedTuple):
    """The timing of cases in microseconds: the gaps of a burst, the longest wait for a second charge."""

    burst_gap: int
    second_charge: int


PAST = Tempo(8 * SECOND, 9 * 60 * SECOND)
LIVE = Tempo(SECOND // 4, 5 * SECOND)


class _FollowUp(NamedTuple):
    """A scheduled record of a case; the last one, a charge, names the kind and all charges of the case."""

    at: int
    number: int
    record: Authorisation | Login
    kind: str = ""
    txn_ids: tuple[str, ...] = ()


class CaseInjector:
    """Injects cases, and holds those that are started; `written` records each once it is complete."""

    def __init__(
        self, random: Random, population: Population, charges: Charges, written: WrittenRecords, first: int
    ) -> None:
        self.renewals = Renewals(random, population.subscriptions, first)
        self.habits = Habits(random, population.regulars, first)
        self._random, self._population, self._charges, self._written = random, population, charges, written
        self._follow_ups: list[_FollowUp] = []

    def inject(self, kind: str, at: int, tempo: Tempo) -> Raw | None:
        """The first record of a case; None for a higher price or a broken habit, which a later payment shows."""
        if kind == INCREASE:
            self.renewals.request_increase(at)
            return None
        if kind == HABIT:
            self.habits.request_break(at)
            return None
        if kind == LARGE:
            return self._large(at)
        if kind == TAKEOVER:
            return self._takeover(at, tempo)
        several = {
            VELOCITY: self._burst,
            DUPLICATE: self._duplicate,
            TRAVEL: self._travel,
            DEVICE: self._device,
            ATTACK: self._attack,
        }
        return self._start(kind, several[kind](at, tempo))

    def is_due(self, at: int | None = None) -> bool:
        """Whether a started case has a record that is due at time `at`, or has any."""
        return bool(self._follow_ups) and (at is None or self._follow_ups[0].at <= at)

    def follow_up(self, latest: int) -> Raw:
        """The next record of a started case, with a time no later than `latest`."""
        due = heappop(self._follow_ups)
        record = due.record._replace(at=min(due.at, latest))
        if isinstance(record, Login):
            return self._written.login(record)
        return self._written.completing(due.kind, record, due.txn_ids) if due.kind else self._written.valid(record)

    def _start(self, kind: str, charges: list[Authorisation]) -> Raw:
        first, *others, last = charges
        for charge in others:
            heappush(self._follow_ups, _FollowUp(charge.at, charge.number, charge))
        txn_ids = tuple(charge.txn_id for charge in charges)
        heappush(self._follow_ups, _FollowUp(last.at, last.number, last, kind, txn_ids))
        return self._written.valid(first)

    def _large(self, at: int) -> Raw:
        auth = self._charges.usual(self._population.available_card(at), at)
        minor = int((LARGE_FROM + 6000 * self._random.random()) * 10**auth.merchant.country.decimals)
        return self._written.completing(LARGE, auth._replace(minor=minor))

    def _burst(self, at: int, tempo: Tempo) -> list[Authorisation]:
        """A stolen card is tested: small, rising amounts at many merchants."""
        card, charges = self._population.available_card(at), []
        for n in range(self._some(*_BURST)):
            merchant = self._population.anyone()
            number = self._written.next_number()
            charges.append(Authorisation(number, at, card, merchant, merchant.terminals[0], 50 + 7 * n))
            at += self._gap(tempo)
        card.available_at = charges[-1].at + COOLDOWN
        return charges

    def _duplicate(self, at: int, tempo: Tempo) -> list[Authorisation]:
        auth = self._charges.usual(self._population.available_card(at), at)
        again = auth._replace(number=self._written.next_number(), at=auth.at + self._second(tempo))
        auth.card.available_at = again.at + COOLDOWN
        return [auth, again]

    def _travel(self, at: int, tempo: Tempo) -> list[Authorisation]:
        """A copy of the card is used in another country, while its owner is at home."""
        card = self._population.available_card(at)
        home, away = (self._population.till(card.home, abroad=abroad) for abroad in (False, True))
        there = self._charges.at(home, card, at, self._population.amount(card, home))
        gone = self._charges.at(away, card, at + self._second(tempo), self._population.amount(card, away))
        card.available_at = gone.at + _STOPPED
        return [there, gone._replace(place=away.place)]

    def _device(self, at: int, tempo: Tempo) -> list[Authorisation]:
        """Stolen cards are used on one device."""
        charges, device = [], ""
        for _ in range(self._some(*_CARDS_OF_DEVICE)):
            card, shop = self._population.new_card(), self._population.online_shop()
            device = device or card.device
            charge = self._charges.at(shop, card, at, self._population.amount(card, shop))
            charges.append(charge._replace(device=device))
            at += self._gap(tempo)
        return charges

    def _attack(self, at: int, tempo: Tempo) -> list[Authorisation]:
        """Guessed numbers are tried out at one shop; few of them exist."""
        charges, shop = [], self._population.target()
        for n in range(self._some(*_CARDS_OF_ATTACK)):
            least = int((1 + 3 * self._random.random()) * 10**shop.country.decimals)
            charge = self._charges.at(shop, self._population.new_card(), at, least)
            charges.append(charge._replace(approved=n % _APPROVED_OF_ATTACK == 1))
            at += self._gap(tempo)
        return charges

    def _takeover(self, at: int, tempo: Tempo) -> Raw:
        """The owner logs in; then a thief guesses the password on a device of their own, and pays with it."""
        card, next_number = self._population.available_card(at), self._written.next_number
        owner = Login(next_number(), at, card, card.device)
        strange = f"d-x{owner.number:012x}"
        guesses = self._some(*_FAILURES_OF_TAKEOVER)
        for n in range(guesses + 1):
            at += self._gap(tempo)
            login = Login(next_number(), at, card, strange, succeeds=n == guesses)
            heappush(self._follow_ups, _FollowUp(at, login.number, login))
        shop = self._population.online_shop()
        charge = self._charges.at(shop, card, at + self._gap(tempo), self._population.amount(card, shop))
        charge = charge._replace(device=strange)
        heappush(self._follow_ups, _FollowUp(charge.at, charge.number, charge, TAKEOVER, (charge.txn_id,)))
        return self._written.login(owner)

    def _some(self, least: int, most: int) -> int:
        return least + int(self._random.random() * (most - least + 1))

    def _gap(self, tempo: Tempo) -> int:
        return int(tempo.burst_gap * (0.5 + 0.5 * self._random.random()))

    def _second(self, tempo: Tempo) -> int:
        return int(tempo.second_charge * (0.1 + 0.9 * self._random.random()))
