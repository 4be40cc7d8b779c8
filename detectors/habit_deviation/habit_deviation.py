"""Flags a payment that is far above what its card usually pays, measured by the spread of the card's own amounts.

Amounts are compared by their logarithms, since they spread by factors: after 3 and 30 a payment of 60 is no surprise.
The habit is a running mean and variance (Welford), in which old payments fade. It misses cards without enough payments,
a rise in small steps, and a large payment by a card that often makes such ones.
"""

import math
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold, money


class HabitDeviation(Settings):
    """An alert needs `payments` earlier ones, and an amount `deviations` standard deviations above their mean.

    A deviation is at least the factor `least_spread`. The last `memory` payments make the habit, older ones fade.
    """

    payments: Annotated[int, Field(ge=2)] = 20
    deviations: Annotated[float, Field(gt=0)] = 4.0
    least_spread: Annotated[float, Field(gt=1)] = 1.5
    memory: Annotated[int, Field(ge=2)] = 100
    forget: Duration = timedelta(days=90)


class Habit(State):
    """Mean and variance of the logarithms of one card's amounts in one currency, and how many were seen."""

    payments: int = 0
    mean: float = 0.0
    variance: float = 0.0


def step(habit: Habit, event: Event, settings: HabitDeviation) -> Iterator[Alert]:
    """Compares a payment with the habit before it; an approved one becomes a part of the habit."""
    amount = math.log(event.amount)
    if habit.payments >= settings.payments:
        deviation = max(math.sqrt(habit.variance), math.log(settings.least_spread))
        limit = settings.deviations * deviation
        if amount - habit.mean > limit:
            yield _alert(habit, event, (amount - habit.mean) / deviation, settings)
        # what lies outside counts as if it were at the limit: one payment does not make the next of its kind usual
        amount = min(max(amount, habit.mean - limit), habit.mean + limit)
    if event.auth_result == "approved":
        learn(habit, amount, settings.memory)


def detect(events: DataFrame, settings: HabitDeviation, tables: Tables) -> Fold[Habit]:
    """Reversals and verifications are no payments, and the amounts of two currencies do not compare."""
    by = ("card_id", "currency")
    return fold(events.where(F.col("amount") > 0), by=by, state=Habit, step=step, expires=settings.forget)


def learn(habit: Habit, value: float, memory: int) -> None:
    """Mean and variance with one more value: exact up to `memory` values, then exponentially weighted."""
    habit.payments += 1
    weight = 1 / min(habit.payments, memory)
    away = value - habit.mean
    habit.mean += weight * away
    habit.variance = (1 - weight) * (habit.variance + weight * away * away)


def _alert(habit: Habit, event: Event, above: float, settings: HabitDeviation) -> Alert:
    usual = Decimal(f"{math.exp(habit.mean):.4f}")
    return Alert(
        reason=f"{money(event.amount, event.currency)} at merchant {event.merchant_id} is "
        f"{event.amount / usual:.0f} times what this card usually pays, {money(usual, event.currency)} in "
        f"{habit.payments} payments",
        # from 0.5 at the limit towards 1
        score=1 - 0.5 * settings.deviations / above,
        evidence=[event.event_id],
        values={
            "amount": event.amount,
            "usual": usual,
            "currency": event.currency,
            "deviations": f"{above:.1f}",
            "payments": habit.payments,
        },
    )


detector = Detector(detect, settings=HabitDeviation)
