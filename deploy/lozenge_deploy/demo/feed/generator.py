"""The stream of raw records: ordinary traffic of a small population, with injected cases and malformed records.

Equal arguments give byte-equal records, transaction ids included. What a detector should find is injected and recorded
in `written.cases`. Ordinary traffic never looks like it (see `population`): a case without an alert is missed, an
alert without a case is false.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain, cycle, repeat
from random import Random

from lozenge_deploy.demo.feed.cases import HABIT, INCREASE, KINDS, LIVE, PAST, TAKEOVER, CaseInjector, Tempo
from lozenge_deploy.demo.feed.charges import Charges
from lozenge_deploy.demo.feed.formats import JSON, Authorisation, Form, Login
from lozenge_deploy.demo.feed.population import SECOND, Card, Population
from lozenge_deploy.demo.feed.schedule import history, micros
from lozenge_deploy.demo.feed.written_records import Raw, WrittenRecords

_DECLINED = 0.04
_LOGIN_SHARE, _MISTYPED = 0.1, 0.1
"""The share of logins in ordinary traffic, and that of failed ones among them."""
_RECORDS_PER_PAST_CASE = 2000


class Generator:
    """Call `past`, then `live`, then `finish`, each to its end; one generator is one run.

    `start` is the start of the history, or of a run without one. `written` grows with every record taken
    from an iterator, so the caller must send each one. With `logins` a part of the records are such; only JSON has the
    accounts and devices that connect them with payments.
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
        logins: bool = False,
    ) -> None:
        if logins and form is not JSON:
            raise ValueError(f"records of {form.topic} name no account and no device, so no login belongs to them")
        self.written = WrittenRecords(form, seed, start)
        self._random = Random(seed)
        self._population = Population(self._random, cards, merchants, seed)
        self._malformed_rate = malformed_rate
        self._kinds = (*KINDS, TAKEOVER) if logins else KINDS
        self._next_kind = cycle(self._kinds)
        self._login_share = _LOGIN_SHARE * logins
        self._start = start
        self._of_files = deque[Card]()
        self._charges = Charges(self._random, self._population, self.written)
        self._cases = CaseInjector(self._random, self._population, self._charges, self.written, micros(start))

    def past(self, end: datetime, count: int) -> Iterator[Raw]:
        """`count` records in event-time order from the start to `end`, with a case in every 2,000.

        Subscriptions run from the start, so a history of 90 days holds three periods of each. So do habits, which are
        known after half of it.
        """
        slots = history(self._random, self._start, end, count)
        cases = max(count // _RECORDS_PER_PAST_CASE, 1)
        every = (micros(end) - micros(self._start)) // (cases + 1)
        return self._stream(slots, repeat(every), PAST)

    def live(self, slots: Iterable[int], case_every: float = 3.0) -> Iterator[Raw]:
        """A record for each of `slots`, with that time; a case of each kind in ten seconds, then one per `case_every`.

        A price increase needs a subscription that is due within a day after three equal periods; it waits for one. A
        broken habit needs a history of two months. At fewer than ten records per second raise `case_every`, or the
        cases displace the ordinary traffic.
        """
        soon = [SECOND, *[9 * SECOND // 8] * (len(self._kinds) - 1)]
        return self._stream(slots, chain(soon, repeat(int(case_every * SECOND))), LIVE)

    def finish(self, now: datetime) -> Iterator[Raw]:
        """Completes the started cases at once, with times no later than `now`."""
        while self._cases.is_due():
            yield self._cases.follow_up(micros(now))

    def in_file(self, at: int) -> Raw:
        """An ordinary payment that comes in a file, and so later than others of its time.

        Its card is in no other record: each card's payments keep their order.
        """
        cards = self._of_files
        card = cards.popleft() if cards and cards[0].available_at <= at else self._population.new_card()
        cards.append(card)
        return self.written.row(self._charges.usual(card, at))

    def _stream(self, slots: Iterable[int], gaps: Iterator[int], tempo: Tempo) -> Iterator[Raw]:
        case_at: int | None = None
        debt = 0
        for at in slots:
            while self._cases.is_due(at):
                yield self._cases.follow_up(at)
                debt += 1
            # A follow-up keeps its own time but replaces an ordinary record, so that counts and rates stay as asked.
            if debt:
                debt -= 1
                continue
            if case_at is None:
                case_at = at + next(gaps)
            if at >= case_at:
                case_at += next(gaps)
                if case := self._cases.inject(self._kind(tempo), at, tempo):
                    yield case
                    continue
            yield self._renewal(at) or self._habit(at) or self._login(at) or self._purchase(at)

    def _kind(self, tempo: Tempo) -> str:
        """The next kind of case. An account is taken over in live traffic alone.

        A history is sent in seconds, and either stream may be normalised first: its payments are months ahead of its
        logins then, or behind them, more than any state could keep.
        """
        kind = next(self._next_kind)
        return next(self._next_kind) if kind == TAKEOVER and tempo is PAST else kind

    def _renewal(self, at: int) -> Raw | None:
        """The charge of a subscription that is due."""
        if (renewal := self._cases.renewals.next_due(at)) is None:
            return None
        subscription = renewal.subscription
        card, merchant = subscription.card, subscription.merchant
        number = self.written.next_number()
        auth = Authorisation(number, at, card, merchant, merchant.terminals[0], subscription.price)
        return self.written.completing(INCREASE, auth) if renewal.increased else self.written.valid(auth)

    def _habit(self, at: int) -> Raw | None:
        """The payment of a creature of habit that is due."""
        if (payment := self._cases.habits.next_due(at)) is None:
            return None
        auth = self._charges.at(payment.merchant, payment.card, at, payment.minor)
        return self.written.completing(HABIT, auth) if payment.broken else self.written.valid(auth)

    def _login(self, at: int) -> Raw | None:
        """An owner who logs in on the own device, and mistypes the password now and then."""
        if not self._login_share or self._random.random() >= self._login_share:
            return None
        card = self._population.available_card(at)
        succeeds = self._random.random() >= _MISTYPED
        return self.written.login(Login(self.written.next_number(), at, card, card.device, succeeds))

    def _purchase(self, at: int) -> Raw:
        auth = self._charges.usual(self._population.available_card(at), at)
        draw = self._random.random()
        if draw < self._malformed_rate:
            return self.written.malformed_of(auth)
        return self.written.valid(auth if draw < 1 - _DECLINED else auth._replace(approved=False))
