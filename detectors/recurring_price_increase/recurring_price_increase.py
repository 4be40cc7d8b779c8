"""Flags a subscription whose latest charge is above its last ones, so that the cardholder can be informed.

A subscription is a card's approved recurring charges at one merchant in one currency, about a month apart. Charges in
between are ignored; after a longer gap a new subscription begins. It misses yearly and weekly subscriptions, an
increase within the first periods or with a change of currency, and prices that rise by less than the threshold each
time.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold, money


class RecurringPriceIncrease(Settings):
    """An alert needs `periods` earlier charges, each `shortest` to `longest` after the one before.

    The new charge must be more than `percent` above the highest of them.
    """

    periods: int = 3
    shortest: Duration = timedelta(days=25)
    longest: Duration = timedelta(days=35)
    percent: Decimal = Decimal("5")


class Charge(State):
    """One period's charge."""

    at: datetime
    amount: Decimal
    event_id: str


class Subscription(State):
    """The last charges, oldest first, and since when the latest price has been paid."""

    charges: tuple[Charge, ...] = ()
    since: datetime | None = None


def step(subscription: Subscription, event: Event, settings: RecurringPriceIncrease) -> Iterator[Alert]:
    """Raises one alert per increase: the new price is among the last charges afterwards."""
    charges = subscription.charges
    if charges:
        gap = event.event_time - charges[-1].at
        if gap < settings.shortest:
            return
        if gap > settings.longest:
            charges = ()
    if len(charges) >= settings.periods:
        highest = max(charge.amount for charge in charges)
        if event.amount > highest * (1 + settings.percent / 100):
            yield _increase(subscription, event)
    if not charges or charges[-1].amount != event.amount:
        subscription.since = event.event_time
    latest = Charge(at=event.event_time, amount=event.amount, event_id=event.event_id)
    subscription.charges = (*charges, latest)[-settings.periods :]


def detect(events: DataFrame, settings: RecurringPriceIncrease, tables: Tables) -> Fold[Subscription]:
    """The subscriptions among the events."""
    paid = (F.col("channel") == "recurring") & (F.col("auth_result") == "approved") & (F.col("amount") > 0)
    by = ("card_id", "merchant_id", "currency")
    return fold(events.where(paid), by=by, state=Subscription, step=step, expires=3 * settings.longest)


def _increase(subscription: Subscription, event: Event) -> Alert:
    assert subscription.since is not None  # it is set with the first charge
    old = subscription.charges[-1].amount
    percent = (event.amount / old - 1) * 100
    return Alert(
        reason=f"the subscription at merchant {event.merchant_id} costs {money(event.amount, event.currency)} "
        f"instead of {money(old, event.currency)}, paid since {subscription.since:%Y-%m-%d} (+{percent:.0f} %)",
        score=min(1.0, float(percent) / 100),
        evidence=[*(charge.event_id for charge in subscription.charges), event.event_id],
        values={"old_price": old, "new_price": event.amount, "currency": event.currency, "percent": f"{percent:.1f}"},
    )


detector = Detector(detect, settings=RecurringPriceIncrease)
