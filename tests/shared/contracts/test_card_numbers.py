"""Card numbers are found, and nothing else is taken for one."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.contracts.card_numbers import FIRST_SHOWN, LAST_SHOWN, has_card_number, masked
from tests.shared.contracts.card_number_texts import MASKED, UNTOUCHED


@pytest.mark.parametrize("text", MASKED)
def test_a_card_number_keeps_its_first_six_and_last_four_digits(text: str) -> None:
    assert masked(text) == MASKED[text]
    assert has_card_number(text)


@pytest.mark.parametrize("text", UNTOUCHED)
def test_another_text_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert not has_card_number(text)


@pytest.mark.parametrize("text", MASKED)
def test_a_masked_text_has_no_card_number_left(text: str) -> None:
    assert masked(masked(text)) == masked(text)
    assert len(masked(text)) == len(text)


@given(st.uuids())
def test_no_uuid_holds_a_card_number(identifier: UUID) -> None:
    assert masked(str(identifier)) == str(identifier)


@given(st.text("0123456789", min_size=24, max_size=24), st.text("0123456789abcdef", min_size=8, max_size=8))
def test_no_uuid_of_many_digits_holds_a_card_number(digits: str, rest: str) -> None:
    identifier = str(UUID(digits + rest))
    assert masked(identifier) == identifier


def with_check_digit(digits: str) -> str:
    return next(number for last in "0123456789" if _sum(number := digits + last) % 10 == 0)


def _sum(number: str) -> int:
    """Luhn as ISO/IEC 7812-1 states it, digit by digit."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        doubled = int(digit) * (2 if place % 2 else 1)
        total += doubled // 10 + doubled % 10
    return total


@pytest.mark.parametrize("length", range(13, 20))
def test_every_length_of_a_card_number_is_found_and_only_with_its_check_digit(length: int) -> None:
    chance = random.Random(length)
    for _ in range(200):
        number = with_check_digit(chance.choice("23456789") + "".join(chance.choices("0123456789", k=length - 2)))
        hidden = "*" * (length - FIRST_SHOWN - LAST_SHOWN)
        assert masked(f"a{number}b") == f"a{number[:FIRST_SHOWN]}{hidden}{number[-LAST_SHOWN:]}b"
        wrong = number[:-1] + str((int(number[-1]) + chance.randint(1, 9)) % 10)
        assert masked(wrong) == wrong


def test_a_long_text_of_digits_takes_no_longer_than_it_is() -> None:
    text = "4000 " * 20_000 + "1234567890" * 20_000
    assert len(masked(text)) == len(text)
