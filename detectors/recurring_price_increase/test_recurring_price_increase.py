from typing import Any

from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def paid(*prices: str, every: int = 30, **fields: Any) -> list[dict[str, Any]]:
    """A subscription with these prices; the last one is paid now."""
    days = range(-every * (len(prices) - 1), 1, every)
    return [{"channel": "recurring", "amount": p, "at": f"{d}d", **fields} for p, d in zip(prices, days, strict=True)]


RISEN = paid("9.99", "9.99", "9.99", "12.99")


def test_fires_when_a_subscription_becomes_dearer() -> None:
    [alert] = run(detector, RISEN)
    assert alert.reason == (
        "the subscription at merchant merchant-1 costs 12.99 EUR instead of 9.99 EUR, paid since 2024-02-14 (+30 %)"
    )
    assert alert.evidence == ("e1", "e2", "e3", "e4")
    assert alert.values == {"old_price": "9.9900", "new_price": "12.9900", "currency": "EUR", "percent": "30.0"}


def test_a_new_price_raises_one_alert() -> None:
    assert len(run(detector, paid("9.99", "9.99", "9.99", "12.99", "12.99", "12.99"))) == 1


def test_each_of_two_increases_names_the_date_of_the_old_price() -> None:
    _, second = run(detector, paid("10", "10", "10", "12", "12", "15"))
    assert "instead of 12.00 EUR, paid since 2024-03-15 (+25 %)" in second.reason


def test_stays_silent_below_the_threshold_and_when_it_becomes_cheaper() -> None:
    assert run(detector, paid("10", "10", "10", "10.50")) == []
    assert run(detector, paid("10", "10", "10", "5", "10")) == []
    assert len(run(detector, paid("10", "10", "10", "10.50"), {"percent": "4.9"})) == 1


def test_stays_silent_until_enough_periods_are_known() -> None:
    assert run(detector, paid("9.99", "9.99", "12.99")) == []
    assert len(run(detector, paid("9.99", "9.99", "12.99"), {"periods": 2})) == 1


def test_weekly_charges_and_other_purchases_are_no_subscription() -> None:
    assert run(detector, paid("9.99", "9.99", "9.99", "12.99", every=7)) == []
    assert run(detector, paid("9.99", "9.99", "9.99", "12.99", channel="ecom")) == []


def test_charges_in_between_are_ignored() -> None:
    extra = {"channel": "recurring", "amount": "90", "at": "-20d"}
    [alert] = run(detector, [*RISEN[:3], extra, RISEN[3]])
    assert "instead of 9.99 EUR" in alert.reason


def test_a_missed_period_begins_a_new_subscription() -> None:
    assert run(detector, [RISEN[0], RISEN[2], RISEN[3]], {"periods": 2}) == []


def test_a_missing_merchant_is_one_merchant() -> None:
    assert len(run(detector, [{**event, "merchant_id": None} for event in RISEN])) == 1
