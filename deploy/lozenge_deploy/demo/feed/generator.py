"""The stream of raw records: ordinary traffic of a small population, with injected cases and malformed records.

Equal arguments give byte-equal records, transaction ids included. What a detector should find is injected and recorded
in `written.cases`. Ordinary traffic never looks like it (see `population`): a case without an alert is missed, an
alert without a case is false.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from itertools import chain, cycle, repeat
from random import Random
from typing import NamedTuple

from lozenge_deploy.demo.feed.formats import JSON, Authorisation, Form
from lozenge_deploy.demo.feed.population import COOLDOWN, SECOND, Card, Population
from lozenge_deploy.demo.feed.renewals import Renewals
from lozenge_deploy.demo.feed.schedule import history, micros
from lozenge_deploy.demo.feed.written_records import Raw, WrittenRecords

VELOCITY = "card_velocity"
DUPLICATE = "duplicate_charge"
LARGE = "large_amount"
INCREASE = "recurring_price_increase"
KINDS = (VELOCITY, DUPLICATE, LARGE, INCREASE)

LARGE_FROM = 3000
_BURST = (14, 18)
_DECLINED = 0.04
_RECORDS_PER_PAST_CASE = 2000


class _Tempo(NamedTuple):
    """The timing of cases in microseconds: the gaps of a burst, the longest wait for a second charge."""

    burst_gap: int
    second_charge: int


class _FollowUp(NamedTuple):
    """A scheduled charge of a case; the last one names the kind and all charges of the case."""

    at: int
    number: int
    auth: Authorisation
    kind: str = ""
    txn_ids: tuple[str, ...] = ()


_PAST = _Tempo(8 * SECOND, 9 * 60 * SECOND)
_LIVE = _Tempo(SECOND // 4, 5 * SECOND)


class Generator:
    """Call `past`, then `live`, then `finish`, each to its end; one generator is one run.

    `start` is the start of the history, or of a run without one. `written` grows with every record taken
    from an iterator, so the caller must send each one.
    """

    def __init__(
        self,
        start: datetime,
        *,
        seed: int = 7,
        cards: int = 1000,
        merchants: int = 400,
        malformed_rate: float = 0.002,
        form: Form = JSON,
    ) -> None:
        self.written = WrittenRecords(form, seed, start)
        self._random = Random(seed)
        self._population = Population(self._random, cards, merchants, seed)
        self._malformed_rate = malformed_rate
        self._kinds = cycle(KINDS)
        self._start = start
        self._follow_ups: list[_FollowUp] = []
        self._renewals = Renewals(self._random, self._population.subscriptions, micros(start))

    def past(self, end: datetime, count: int) -> Iterator[Raw]:
        """`count` records in event-time order from the start to `end`, with a case in every 2,000.

        Subscriptions run from the start, so a history of 90 days holds three periods of each.
        """
        slots = history(self._random, self._start, end, count)
        cases = max(count // _RECORDS_PER_PAST_CASE, 1)
        every = (micros(end) - micros(self._start)) // (cases + 1)
        return self._stream(slots, repeat(every), _PAST)

    def live(self, slots: Iterable[int], case_every: float = 3.0) -> Iterator[Raw]:
        """A record for each of `slots`, with that time; a case of each kind in ten seconds, then one per `case_every`.

        A price increase needs a subscription that is due within a day after three equal periods; it waits for one. At
        fewer than ten records per second raise `case_every`, or the cases displace the ordinary traffic.
        """
        soon = [SECOND, *[5 * SECOND // 2] * (len(KINDS) - 1)]
        return self._stream(slots, chain(soon, repeat(int(case_every * SECOND))), _LIVE)

    def finish(self, now: datetime) -> Iterator[Raw]:
        """Completes the started cases at once, with times no later than `now`."""
        while self._follow_ups:
            yield self._follow_up(micros(now))

    def _stream(self, slots: Iterable[int], gaps: Iterator[int], tempo: _Tempo) -> Iterator[Raw]:
        case_at: int | None = None
        debt = 0
        for at in slots:
            while self._follow_ups and self._follow_ups[0].at <= at:
                yield self._follow_up(at)
                debt += 1
            # A follow-up keeps its own time but replaces an ordinary record, so that counts and rates stay as asked.
            if debt:
                debt -= 1
                continue
            if case_at is None:
                case_at = at + next(gaps)
            if at >= case_at:
                case_at += next(gaps)
                if case := self._inject(next(self._kinds), at, tempo):
                    yield case
                    continue
            yield self._renewal(at) or self._purchase(at)

    def _inject(self, kind: str, at: int, tempo: _Tempo) -> Raw | None:
        """The first record of a case; None for an increase, which the next renewal shows."""
        if kind == INCREASE:
            self._renewals.request_increase(at)
            return None
        card = self._population.available_card(at)
        if kind == VELOCITY:
            return self._burst(card, at, tempo)
        auth = self._charge(card, at)
        if kind == DUPLICATE:
            return self._duplicate(auth, tempo)
        large = int((LARGE_FROM + 6000 * self._random.random()) * 10**auth.merchant.country.decimals)
        return self.written.completing(LARGE, auth._replace(minor=large))

    def _burst(self, card: Card, at: int, tempo: _Tempo) -> Raw:
        """A stolen card is tested: small, rising amounts at many merchants."""
        least, most = _BURST
        charges = []
        for n in range(least + int(self._random.random() * (most - least + 1))):
            merchant = self._population.anyone()
            charges.append(
                Authorisation(self.written.next_number(), at, card, merchant, merchant.terminals[0], 50 + 7 * n)
            )
            at += int(tempo.burst_gap * (0.5 + 0.5 * self._random.random()))
        txn_ids = tuple(charge.txn_id for charge in charges)
        for charge in charges[1:-1]:
            heappush(self._follow_ups, _FollowUp(charge.at, charge.number, charge))
        last = charges[-1]
        heappush(self._follow_ups, _FollowUp(last.at, last.number, last, VELOCITY, txn_ids))
        card.available_at = last.at + COOLDOWN
        return self.written.valid(charges[0])

    def _duplicate(self, auth: Authorisation, tempo: _Tempo) -> Raw:
        at = auth.at + int(tempo.second_charge * (0.1 + 0.9 * self._random.random()))
        again = auth._replace(number=self.written.next_number(), at=at)
        heappush(self._follow_ups, _FollowUp(at, again.number, again, DUPLICATE, (auth.txn_id, again.txn_id)))
        auth.card.available_at = at + COOLDOWN
        return self.written.valid(auth)

    def _follow_up(self, latest: int) -> Raw:
        due = heappop(self._follow_ups)
        auth = due.auth._replace(at=min(due.at, latest))
        return self.written.completing(due.kind, auth, due.txn_ids) if due.kind else self.written.valid(auth)

    def _renewal(self, at: int) -> Raw | None:
        """The charge of a subscription that is due."""
        if (renewal := self._renewals.next_due(at)) is None:
            return None
        subscription = renewal.subscription
        card, merchant = subscription.card, subscription.merchant
        number = self.written.next_number()
        auth = Authorisation(number, at, card, merchant, merchant.terminals[0], subscription.price)
        return self.written.completing(INCREASE, auth) if renewal.increased else self.written.valid(auth)

    def _purchase(self, at: int) -> Raw:
        auth = self._charge(self._population.available_card(at), at)
        draw = self._random.random()
        if draw < self._malformed_rate:
            return self.written.malformed_of(auth)
        return self.written.valid(auth if draw < 1 - _DECLINED else auth._replace(approved=False))

    def _charge(self, card: Card, at: int) -> Authorisation:
        merchant = self._population.merchant_for(card)
        terminals = merchant.terminals
        terminal = terminals[int(self._random.random() * len(terminals))]
        amount = self._population.amount(card, merchant)
        card.purchases += 1
        card.available_at = at + COOLDOWN
        return Authorisation(self.written.next_number(), at, card, merchant, terminal, amount)
