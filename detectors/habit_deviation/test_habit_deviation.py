import math
import statistics
from typing import Any

import pytest

from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def habit(*amounts: str, **fields: Any) -> list[dict[str, Any]]:
    """Twenty payments of one card, of these amounts in turn, an hour apart, the last one an hour ago."""
    return [{"amount": amounts[n % len(amounts)], "at": f"{n - 20}h", **fields} for n in range(20)]


def test_a_habit_is_mean_and_variance_of_what_was_learnt() -> None:
    from habit_deviation.habit_deviation import Habit, learn

    values = [math.log(amount) for amount in (3, 90, 12.5, 12.5, 7)]
    exact = Habit()
    for value in values:
        learn(exact, value, memory=5)
    assert exact.payments == 5
    assert exact.mean == pytest.approx(statistics.fmean(values))
    assert exact.variance == pytest.approx(statistics.pvariance(values))


def test_old_payments_fade() -> None:
    from habit_deviation.habit_deviation import Habit, learn

    changed = Habit()
    for value in [1.0] * 1000 + [3.0] * 40:
        learn(changed, value, memory=10)
    assert changed.mean == pytest.approx(3, abs=0.05)
    assert changed.variance < 0.1


def test_fires_far_above_the_habit() -> None:
    [alert] = run(detector, [*habit("4", "9"), {"amount": "150", "at": "0s"}])
    assert alert.reason == (
        "150.00 EUR at merchant merchant-1 is 25 times what this card usually pays, 6.00 EUR in 20 payments"
    )
    assert (alert.entity, alert.evidence) == ("card-1", ("e21",))
    assert alert.values == {
        "amount": "150.0000",
        "usual": "6.0000",
        "currency": "EUR",
        "deviations": "7.9",
        "payments": "20",
    }
    assert 0.74 < alert.score < 0.76


def test_fires_on_a_declined_payment_that_teaches_nothing() -> None:
    large = {"amount": "150", "auth_result": "declined"}
    alerts = run(detector, [*habit("4", "9"), *({**large, "at": f"{n}m"} for n in range(30))])
    assert len(alerts) == 30
    assert {alert.values["payments"] for alert in alerts} == {"20"}


def test_fires_less_and_less_on_a_new_habit() -> None:
    alerts = run(detector, [*habit("4", "9"), *({"amount": "150", "at": f"{n}h"} for n in range(60))])
    assert 1 < len(alerts) < 60
    assert [alert.event_time for alert in alerts] == sorted(alert.event_time for alert in alerts)


def test_stays_silent_within_the_spread() -> None:
    # four factors of 1.5 are 5.06
    assert run(detector, [*habit("10"), {"amount": "50", "at": "0s"}]) == []
    assert len(run(detector, [*habit("10"), {"amount": "51", "at": "0s"}])) == 1
    assert run(detector, [*habit("3", "90"), {"amount": "900", "at": "0s"}]) == []
    assert run(detector, [*habit("90"), {"amount": "0.01", "at": "0s"}]) == []


def test_stays_silent_until_a_habit_is_known() -> None:
    assert run(detector, [*habit("4")[1:], {"amount": "900", "at": "0s"}]) == []
    assert len(run(detector, [*habit("4")[1:], {"amount": "900", "at": "0s"}], {"payments": 19})) == 1


def test_stays_silent_for_another_card_or_currency_or_what_is_no_payment() -> None:
    others = ({"card_id": "card-2"}, {"currency": "USD"}, {"amount": "-900"}, {"amount": "0"})
    assert run(detector, [*habit("4"), *({"amount": "900", "at": "0s", **other} for other in others)]) == []


def test_a_habit_is_forgotten() -> None:
    assert run(detector, [*habit("4"), {"amount": "900", "at": "91d"}]) == []


def test_a_missing_amount_is_no_payment() -> None:
    assert run(detector, [*habit("4"), {"amount": None, "at": "0s"}]) == []
