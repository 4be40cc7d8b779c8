"""Flags a payment from a device that got into the account under suspicious circumstances: the account is taken over.

The first login from a device is suspicious if several failed ones precede it, or if the way to log in is changed on it
afterwards. The times of events decide, not their order of arrival: either stream may be behind. It misses thieves on a
known device, those who pay from another one than they logged in from, and the first device of an account.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, TypeVar

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold, money

CHANGES = ("password_reset", "password_change", "email_change", "phone_change", "factor_change")
KEPT = 10
"""The latest failures, changes and payments of an account, each."""


class AccountTakeover(Settings):
    """A payment within `within` of the first login from a device is looked at, and changes within that time too.

    The login is suspicious after `failures` failed ones within `window`. An account keeps its latest `devices`, and is
    forgotten after `remember` without an event.
    """

    within: Duration = timedelta(hours=24)
    failures: Annotated[int, Field(ge=1, le=KEPT)] = 3
    window: Duration = timedelta(hours=1)
    devices: Annotated[int, Field(ge=2, le=100)] = 10
    remember: Duration = timedelta(days=90)


class Device(State):
    """A device of the account: its first login, its latest one, and whether an alert was raised for it."""

    device_id: str
    since: datetime
    latest: datetime
    event_id: str
    country: str | None
    reported: bool = False


class Sign(State):
    """A failed login, or a change of the way to log in."""

    at: datetime
    event_id: str
    device_id: str | None


class Payment(Sign):
    """A payment from a device."""

    merchant_id: str | None
    amount: Decimal
    currency: str


class Account(State):
    """What is known of one account; each by its time."""

    devices: tuple[Device, ...] = ()
    failures: tuple[Sign, ...] = ()
    changes: tuple[Sign, ...] = ()
    payments: tuple[Payment, ...] = ()


Fact = TypeVar("Fact", bound=Sign)


def step(account: Account, event: Event, settings: AccountTakeover) -> Iterator[Alert]:
    """Adds what the event says, and looks at the account as a whole: the event may complete what came before it."""
    _learn(account, event, settings)
    known = min((each.since for each in account.devices), default=None)
    for device in account.devices:
        if device.since != known and not device.reported and (found := _takeover(account, device, settings)):
            device.reported = True
            yield found


def detect(events: DataFrame, settings: AccountTakeover, tables: Tables) -> Fold[Account]:
    """Logins, changes of the way to log in, and payments from a device."""
    login, result, action = F.col("stream") == "login", F.col("result"), F.col("action")
    tried = (
        login
        & (action == "login")
        & result.isin("success", "failure")
        & ((result == "failure") | F.col("device_id").isNotNull())
    )
    changed = login & action.isin(*CHANGES) & (result == "success") & F.col("device_id").isNotNull()
    paid = (F.col("stream") == "auth") & (F.col("amount") > 0) & F.col("device_id").isNotNull()
    # an hour of grace: in a fast replay of history one stream runs ahead of the other
    return fold(
        events.where(tried | changed | paid),
        by="account_id",
        state=Account,
        step=step,
        expires=settings.remember,
        grace=timedelta(hours=1),
    )


def _learn(account: Account, event: Event, settings: AccountTakeover) -> None:
    if event.stream == "auth":
        payment = Payment(
            at=event.event_time,
            event_id=event.event_id,
            device_id=event.device_id,
            merchant_id=event.merchant_id,
            amount=event.amount,
            currency=event.currency,
        )
        account.payments = _latest(account.payments, payment, settings.within)
        return
    sign = Sign(at=event.event_time, event_id=event.event_id, device_id=event.device_id)
    if event.action != "login":
        account.changes = _latest(account.changes, sign, settings.within)
    elif event.result == "failure":
        account.failures = _latest(account.failures, sign, settings.within + settings.window)
    else:
        _log_in(account, event, settings.devices)


def _latest(facts: tuple[Fact, ...], more: Fact, span: timedelta) -> tuple[Fact, ...]:
    """With one more, by their time: the latest `KEPT` of those no older than `span` before the newest."""
    found = sorted([*facts, more], key=lambda fact: (fact.at, fact.event_id))
    return tuple(fact for fact in found[-KEPT:] if found[-1].at - fact.at <= span)


def _log_in(account: Account, event: Event, most: int) -> None:
    at, others = event.event_time, [each for each in account.devices if each.device_id != event.device_id]
    device = next((each for each in account.devices if each.device_id == event.device_id), None)
    if device is None:
        device = Device(
            device_id=event.device_id, since=at, latest=at, event_id=event.event_id, country=event.ip_country
        )
    elif at < device.since:
        device.since, device.event_id, device.country = at, event.event_id, event.ip_country
    device.latest = max(device.latest, at)
    account.devices = tuple(sorted((*others, device), key=lambda each: each.latest)[-most:])


def _takeover(account: Account, device: Device, settings: AccountTakeover) -> Alert | None:
    """The alert of a device that is not the first one, if it is suspicious and has paid."""

    def after(facts: Sequence[Fact]) -> list[Fact]:
        return [
            fact
            for fact in facts
            if fact.device_id == device.device_id and timedelta() <= fact.at - device.since <= settings.within
        ]

    failed = [each for each in account.failures if timedelta() <= device.since - each.at <= settings.window]
    changed, paid = after(account.changes), after(account.payments)
    many = len(failed) >= settings.failures
    if not paid or not (many or changed):
        return None
    payment = paid[0]
    minutes, country = (payment.at - device.since).total_seconds() / 60, device.country or "an unknown country"
    before = [f"{_counted(len(failed), 'failed login')} before"] * many
    later = [f"{_counted(len(changed), 'change')} of the login after"] * bool(changed)
    facts = [(each.at, each.event_id) for each in (*failed * many, *changed, payment)]
    return Alert(
        reason=f"{money(payment.amount, payment.currency)} at merchant {payment.merchant_id} from a device that first "
        f"logged in {minutes:.0f} min earlier, from {country}; {' and '.join(before + later)} that",
        score=0.9 if many and changed else 0.7,
        evidence=[event_id for _, event_id in sorted([*facts, (device.since, device.event_id)])],
        values={
            "device_id": device.device_id,
            "amount": payment.amount,
            "currency": payment.currency,
            "failures": len(failed),
            "changes": len(changed),
        },
    )


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


detector = Detector(detect, settings=AccountTakeover)
