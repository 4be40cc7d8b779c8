"""Flags a card that one merchant charges the same amount twice within minutes, both times approved.

Each further charge is compared with the one before it, so three equal charges raise two alerts. It misses a second
charge with a different amount or another merchant id. Two equal purchases on purpose (two coffees, a vending machine)
look the same to it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold, money


class DuplicateCharge(Settings):
    """`within` is the longest time between two charges that count as one charged twice."""

    within: Duration = timedelta(minutes=10)


class Seen(State):
    """The latest charge of one card, merchant, amount and currency."""

    at: datetime | None = None
    event_id: str | None = None


def step(seen: Seen, event: Event, settings: DuplicateCharge) -> Iterator[Alert]:
    """Compares a charge with the latest one so far, in either order of arrival."""
    earlier, later = (seen.at, seen.event_id), (event.event_time, event.event_id)
    if seen.at is not None:
        if seen.at > event.event_time:
            earlier, later = later, earlier
        apart = abs(event.event_time - seen.at)
        if apart <= settings.within:
            yield Alert(
                reason=f"charged {money(event.amount, event.currency)} twice by merchant {event.merchant_id}, "
                f"{_spoken(apart)} apart",
                score=1 - 0.5 * (apart / settings.within),
                evidence=[earlier[1], later[1]],
                values={"amount": event.amount, "currency": event.currency, "seconds_apart": apart.total_seconds()},
            )
    seen.at, seen.event_id = later


def detect(events: DataFrame, settings: DuplicateCharge, tables: Tables) -> Fold[Seen]:
    """Reversals and zero amounts (card verifications) are no charges."""
    charges = events.where((F.col("auth_result") == "approved") & (F.col("amount") > 0))
    by = ("card_id", "merchant_id", "amount", "currency")
    # an hour of grace: in a fast replay of history, other cards' charges may run ahead of a card's own
    return fold(charges, by=by, state=Seen, step=step, expires=settings.within, grace=timedelta(hours=1))


def _spoken(apart: timedelta) -> str:
    minutes, seconds = divmod(round(apart.total_seconds()), 60)
    parts = [f"{minutes} min"] * bool(minutes) + [f"{seconds} s"] * bool(seconds or not minutes)
    return " ".join(parts)


detector = Detector(detect, settings=DuplicateCharge)
