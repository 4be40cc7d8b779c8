"""Minor digits and money as a person reads it; an integration test of upstream holds Spark to the same."""

from decimal import Decimal

import pytest

from lozenge.contracts.money import ALPHABETIC, MINOR_DIGITS, minor_digits, money


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4), ("HUF", 2)])
def test_a_currency_has_its_number_of_minor_digits(currency: str, digits: int) -> None:
    assert minor_digits(currency) == digits


def test_an_unknown_currency_has_none() -> None:
    with pytest.raises(KeyError):
        minor_digits("XYZ")


def test_every_numeric_code_names_a_currency() -> None:
    assert set(ALPHABETIC.values()) == set(MINOR_DIGITS) - {"ANG"}  # 532 passed on to XCG
    assert all(len(code) == 3 and code.isdigit() for code in ALPHABETIC)
    assert (ALPHABETIC["978"], ALPHABETIC["008"]) == ("EUR", "ALL")


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("12.5000", "EUR", "12.50 EUR"),
        ("1200.0000", "JPY", "1200 JPY"),
        ("1.2340", "KWD", "1.234 KWD"),
        ("-0.5", "USD", "-0.50 USD"),
        ("2.345", "EUR", "2.35 EUR"),
        ("10000000000000", "EUR", "10000000000000.00 EUR"),
        ("3", "XYZ", "3.00 XYZ"),
    ],
)
def test_an_amount_is_written_with_its_currency(amount: str, currency: str, text: str) -> None:
    assert money(Decimal(amount), currency) == text
