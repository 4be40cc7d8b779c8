from decimal import Decimal

from lozenge.testing import detector_of, run

detector = detector_of(__file__)
LIMITS = {"mcc_limits": [{"mcc": "5411", "mcc_limit": Decimal(250)}, {"mcc": "7995", "mcc_limit": Decimal(0)}]}


def test_fires_above_the_limit_of_the_category() -> None:
    [alert] = run(detector, [{"amount": "250.01", "mcc": "5411"}], tables=LIMITS)
    assert alert.reason == "250.01 EUR at merchant merchant-1 is above the limit of 250.00 EUR for category 5411"
    assert (alert.entity, alert.evidence, alert.severity) == ("card-1", ("e1",), "high")
    assert alert.values == {"amount": "250.0100", "limit": "250.0000", "mcc": "5411"}
    assert 0.5 <= alert.score < 0.51


def test_fires_above_the_general_limit_where_the_category_has_none() -> None:
    [alert] = run(detector, [{"amount": "30000", "mcc": "5999", "currency": "JPY"}], {"default_limit": "20000"})
    assert alert.reason == "30000 JPY at merchant merchant-1 is above the general limit of 20000 JPY"


def test_stays_silent_up_to_the_limit() -> None:
    quiet = [{"amount": "250", "mcc": "5411"}, {"amount": "220"}, {"amount": "0"}, {"amount": "-900"}]
    assert run(detector, quiet, tables=LIMITS) == []


def test_a_limit_of_zero_forbids_the_category() -> None:
    [alert] = run(detector, [{"amount": "0.01", "mcc": "7995"}], tables=LIMITS)
    assert alert.score == 1.0


def test_a_missing_category_falls_under_the_general_limit() -> None:
    [alert] = run(detector, [{"amount": "900", "mcc": None}])
    assert alert.reason.endswith("the general limit of 220.00 EUR")


def test_a_missing_amount_is_no_amount() -> None:
    assert run(detector, [{"amount": None}]) == []
