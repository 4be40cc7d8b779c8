"""Flags a merchant at which somebody tries out stolen card numbers: small payments, most declined, all of other cards.

It looks at the merchant's latest small payments. So the share of declined ones decides, and a large merchant with its
usual declines is silent. An attack raises one alert. It misses attacks with larger amounts, slow ones, and those that
hide among as many good small payments.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold


class MerchantUnderAttack(Settings):
    """Among the last `payments` of at most `small`, `cards` different ones are declined within `within`.

    An attack has ended once that has not been so for `quiet`.
    """

    small: Annotated[Decimal, Field(ge=0)] = Decimal("5")
    payments: Annotated[int, Field(ge=2, le=200)] = 20
    cards: Annotated[int, Field(ge=2)] = 15
    within: Duration = timedelta(minutes=10)
    quiet: Duration = timedelta(hours=1)

    @model_validator(mode="after")
    def _can_be_reached(self) -> "MerchantUnderAttack":
        if self.cards > self.payments:
            raise ValueError(f"{self.cards} cards are never among {self.payments} payments")
        return self


class Attempt(State):
    """A small payment."""

    at: datetime
    card_id: str
    event_id: str
    declined: bool


class Merchant(State):
    """The latest small payments of one merchant, as they arrived; until when the present attack lasts."""

    attempts: tuple[Attempt, ...] = ()
    attacked_until: datetime | None = None


def step(merchant: Merchant, event: Event, settings: MerchantUnderAttack) -> Iterator[Alert]:
    """Raises one alert per attack; each further payment of it makes it last longer."""
    attempt = Attempt(
        at=event.event_time,
        card_id=event.card_id,
        event_id=event.event_id,
        declined=event.auth_result == "declined",
    )
    merchant.attempts = (*merchant.attempts, attempt)[-settings.payments :]
    newest = max(each.at for each in merchant.attempts)
    recent = [each for each in merchant.attempts if each.declined and newest - each.at <= settings.within]
    tried = {each.card_id: each for each in recent}
    if len(tried) < settings.cards:
        return
    if merchant.attacked_until is None or newest > merchant.attacked_until:
        yield _alert(sorted(tried.values(), key=lambda each: (each.at, each.event_id)), merchant, settings)
    merchant.attacked_until = newest + settings.quiet


def detect(events: DataFrame, settings: MerchantUnderAttack, tables: Tables) -> Fold[Merchant]:
    """An amount of zero verifies a card, and serves to try one out as well."""
    small = events.where((F.col("amount") >= 0) & (F.col("amount") <= settings.small))
    expires = max(settings.within, settings.quiet)
    # an hour of grace: in a fast replay of history, other merchants may run ahead of this one
    return fold(small, by="merchant_id", state=Merchant, step=step, expires=expires, grace=timedelta(hours=1))


def _alert(tried: list[Attempt], merchant: Merchant, settings: MerchantUnderAttack) -> Alert:
    seconds = round((tried[-1].at - tried[0].at).total_seconds())
    return Alert(
        reason=f"{len(tried)} cards were declined within {seconds} s, of the last {len(merchant.attempts)} payments "
        f"up to {settings.small.normalize():f}, from {tried[0].at:%Y-%m-%d %H:%M:%S} UTC on",
        score=len(tried) / len(merchant.attempts),
        evidence=[each.event_id for each in tried],
        values={"cards": len(tried), "payments": len(merchant.attempts), "seconds": seconds},
    )


detector = Detector(detect, settings=MerchantUnderAttack)
