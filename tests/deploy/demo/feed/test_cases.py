"""The folds of the project, in plain Python, find every case that the feed injects for them, and nothing else."""

import importlib
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.contracts.partitioner import partition_of
from lozenge.detector.fold import PartitionState, Raised, fold, key_bytes
from lozenge.detector.package import main_module, provide
from lozenge_deploy.demo.feed import Generator, Raw
from lozenge_deploy.demo.feed.cases import ATTACK, DEVICE, HABIT, TAKEOVER, TRAVEL
from lozenge_deploy.demo.feed.formats import LOGINS, RAW_LOGIN, STREAM
from lozenge_deploy.demo.feed.schedule import steady
from lozenge_deploy.demo.reconciliation import match
from lozenge_deploy.demo.topic_counts import CountedAlert

DETECTORS = Path(__file__).parents[4] / "detectors"
END = datetime(2026, 11, 20, 19, tzinfo=UTC)
Event = SimpleNamespace
FOLDS: dict[str, tuple[tuple[str, ...], str]] = {
    TRAVEL: (("card_id",), "Journey"),
    DEVICE: (("device_id",), "Device"),
    ATTACK: (("merchant_id",), "Merchant"),
    HABIT: (("card_id", "currency"), "Habit"),
    TAKEOVER: (("account_id",), "Account"),
}
"""By detector: what it folds by, and its state."""


@pytest.fixture(scope="module")
def feed() -> tuple[Generator, list[Event]]:
    """A history of the demo's length, and a minute of live traffic."""
    made = Generator(END - timedelta(days=90), malformed_rate=0, logins=True)
    raws = [*made.past(END, 20_000), *made.live(steady(END + timedelta(seconds=20), 50, 60))]
    raws += made.finish(END + timedelta(seconds=80))
    return made, [event(raw, json.loads(raw.value)) for raw in raws]


def event(raw: Raw, record: dict[str, Any]) -> Event:
    """As the mapping makes it."""
    if raw.topic == RAW_LOGIN:
        return login(raw.event_time, record)
    return payment(raw.event_time, record)


def login(at: datetime, raw: dict[str, Any]) -> Event:
    return Event(
        stream=LOGINS,
        event_id=raw["id"],
        event_time=at,
        account_id=raw["user"]["account"],
        action=raw["event"],
        result=raw["outcome"].lower(),
        device_id=raw["client"]["device"],
        ip_country=raw["client"]["country"],
    )


def payment(at: datetime, raw: dict[str, Any]) -> Event:
    return Event(
        stream=STREAM,
        account_id=raw["account"],
        event_id=raw["txn_id"],
        event_time=at,
        card_id=raw["pan"],
        merchant_id=raw["merchant"],
        country=raw["country"],
        amount=Decimal(raw["amount"]),
        currency=raw["currency"],
        auth_result=raw["result"],
        device_id=raw.get("device"),
        latitude=raw.get("lat"),
        longitude=raw.get("lon"),
    )


def is_folded(name: str, event: Event, settings: Any) -> bool:
    """What the detector's own expressions say of such an event."""
    if event.stream == LOGINS:
        return name == TAKEOVER
    match name:
        case "impossible_travel":
            return event.latitude is not None
        case "shared_device" | "account_takeover":
            return event.device_id is not None
        case "merchant_under_attack":
            return bool(0 <= event.amount <= settings.small)
    return bool(event.amount > 0)


def raised(name: str, events: list[Event]) -> list[CountedAlert]:
    """The alerts of a detector with its own settings."""
    provide(DETECTORS / name)
    module = importlib.import_module(main_module(name))
    settings = module.detector.settings()
    by, state = FOLDS[name]
    folded: Any = fold(
        None,  # type: ignore[arg-type]
        by=by,
        state=getattr(module, state),
        step=module.step,
        expires=timedelta(days=30),
        grace=timedelta(hours=1),
    )
    partitions = [PartitionState(folded, settings) for _ in range(4)]
    alerts = []
    for number, each in enumerate(event for event in events if is_folded(name, event, settings)):
        values = [getattr(each, column) for column in by]
        for outcome in partitions[partition_of(values[0].encode(), 4)].process(key_bytes(values), each):
            assert isinstance(outcome, Raised), outcome
            alerts.append(CountedAlert(f"{number}", frozenset(filter(None, outcome.alert.evidence))))
    return alerts


@pytest.mark.parametrize("name", FOLDS)
def test_each_case_raises_one_alert(name: str, feed: tuple[Generator, list[Event]]) -> None:
    made, events = feed
    cases = [frozenset(case.txn_ids) for case in made.written.cases if case.kind == name]
    alerts = raised(name, events)
    missed, others = match(cases, alerts)
    assert len(cases) >= 3
    assert missed == []
    injected = frozenset().union(*(case.txn_ids for case in made.written.cases))
    assert [alert for alert in others if alert.evidence.isdisjoint(injected)] == []
    assert len(alerts) - len(others) == len(cases)
