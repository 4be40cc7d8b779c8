"""What fraud analysts fold, in plain Python: labels that come days later, rolling windows, a person's own spread."""

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from lozenge import Alert, Event, Settings, State, fold
from lozenge.detector.fold import Failure, Raised
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import merged
from lozenge.testing import NOW, run_fold
from tests.streams import AUTH

_TIME = {"type": "long", "logicalType": "timestamp-micros"}
LABELS = StreamDefinition(
    name="labels",
    title="Confirmed frauds",
    owner="fraud",
    keys={"terminal": "terminal_id"},
    app="upstream-labels",
    avro={
        "type": "record",
        "name": "Label",
        "namespace": "fraud",
        "fields": [{"name": "terminal_id", "type": "string"}, {"name": "paid_at", "type": _TIME}],
    },
)
BY_TERMINAL = merged([AUTH, LABELS], "terminal")
WINDOW, DELAY = 30, 7
"""Days of payments, and days after which their labels are complete."""


class Days(State):
    """Payments and confirmed frauds of one terminal, by the number of the day."""

    payments: dict[int, int] = {}  # noqa: RUF012 - of a struct each instance gets its own
    frauds: dict[int, int] = {}  # noqa: RUF012


def risk(days: Days, event: Event, settings: Settings) -> Iterator[Alert]:
    """The share of frauds among the payments of a month that ended a week ago."""
    if event.stream == "labels":
        day = event.paid_at.toordinal()
        days.frauds[day] = days.frauds.get(day, 0) + 1
        return
    today = event.event_time.toordinal()
    days.payments[today] = days.payments.get(today, 0) + 1
    first, last = today - DELAY - WINDOW + 1, today - DELAY
    for counts in (days.payments, days.frauds):
        for old in [day for day in counts if day < first]:
            del counts[old]
    paid, stolen = (sum(n for day, n in c.items() if day <= last) for c in (days.payments, days.frauds))
    if paid:
        yield Alert(reason=f"{stolen} of {paid}", score=min(1.0, stolen / paid), values={"today": str(today)})


def test_the_risk_of_a_terminal_counts_labels_of_another_stream_that_come_a_week_later() -> None:
    made = fold(None, by="terminal_id", state=Days, step=risk, expires=timedelta(days=WINDOW + DELAY))  # type: ignore[arg-type]

    def paid(day: int, terminal: str = "t-1") -> dict[str, Any]:
        return {"stream": "auth", "terminal_id": terminal, "at": f"{day}d"}

    def label(day: int, of: int) -> dict[str, Any]:
        return {"stream": "labels", "terminal_id": "t-1", "at": f"{day}d", "paid_at": NOW + timedelta(days=of)}

    given = [paid(0), paid(0), paid(1), label(6, 0), paid(7), label(8, 1), paid(8), paid(8, "t-2"), paid(37), paid(38)]
    outcomes = run_fold(made, Settings(), given, "terminal", BY_TERMINAL)
    assert [each.alert.reason for each in outcomes if isinstance(each, Raised)] == [
        "1 of 2",  # the label of the second day is not there yet
        "2 of 3",
        "1 of 3",  # the month begins with the second day
        "0 of 2",  # both of the eighth and ninth day
    ]


class Recent(State):
    """The times of one card in one country, and whether the present burst has raised its alert."""

    times: list[datetime] = []  # noqa: RUF012
    flagged: bool = False


def burst(recent: Recent, event: Event, settings: Settings) -> Iterator[Alert]:
    """More than five payments in any twelve hours: one alert for each burst."""
    begin = event.event_time - timedelta(hours=12)
    recent.times = [at for at in recent.times if at > begin] + [event.event_time]
    if len(recent.times) <= 5:
        recent.flagged = False
    elif not recent.flagged:
        recent.flagged = True
        yield Alert(reason=f"{len(recent.times)} payments")


def test_a_rolling_window_by_card_and_country_raises_one_alert_for_a_burst() -> None:
    made = fold(None, by=("card_id", "country"), state=Recent, step=burst, expires=timedelta(days=30))  # type: ignore[arg-type]
    hours = [0, 2, 4, 6, 8, 10, 11, 30, 31, 32, 33, 34, 41.99, 42.01]
    given = [{"country": "DE", "at": f"{hour}h"} for hour in hours] + [{"country": "FR", "at": "43h"}] * 5
    raised = [each for each in run_fold(made, Settings(), given) if isinstance(each, Raised)]
    assert [each.event.event_id for each in raised if each.event] == ["e6", "e13"]
    edge = [{"country": "DE", "at": f"{hour}h"} for hour in (0, 1, 2, 3, 4, 12)]
    assert run_fold(made, Settings(), edge) == [], "the first one is twelve hours old"


class Spread(State):
    """Count, mean and sum of squared differences of the amounts of one card (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0


def unusual(own: Spread, event: Event, settings: Settings) -> Iterator[Alert]:
    """Three standard deviations above the mean; the score of an amount without a logarithm is none."""
    amount = float(event.amount)
    deviation = math.sqrt(own.squares / own.count) if own.count else 0.0
    if own.count > 1 and amount > own.mean + 3 * deviation:
        yield Alert(reason=f"{amount:.2f}", score=float("nan") if deviation == 0 else 1 - deviation / amount)
    own.count += 1
    before = amount - own.mean
    own.mean += before / own.count
    own.squares += before * (amount - own.mean)


def test_a_spread_of_nothing_a_refund_and_a_score_that_is_no_number_leave_the_fold_as_it_was() -> None:
    made = fold(None, by="card_id", state=Spread, step=unusual, expires=timedelta(days=30))  # type: ignore[arg-type]
    steady = [{"amount": 10}, {"amount": 10}, {"amount": 10}, {"amount": 11}, {"amount": 10}]
    outcomes = run_fold(made, Settings(), steady)
    assert [type(each) for each in outcomes] == [Failure]
    assert "score nan does not lie between 0 and 1" in str(outcomes[0].error)  # type: ignore[union-attr]
    assert b'"count":3' in outcomes[0].state  # type: ignore[union-attr]
    moving = [{"amount": n} for n in (10, 12, -10, 0, 11, 12, 10, 90)]
    found = Counter(type(each) for each in run_fold(made, Settings(), moving))
    assert found == {Raised: 1}
