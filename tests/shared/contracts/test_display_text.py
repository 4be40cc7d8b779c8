"""Texts that show nothing, and texts that are too long."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.contracts.display_text import is_blank, readable, shortened, shown, shown_data

BLANK = ["", " ", "\n\t", "\u3000", "\u200b\u200b", "\ufeff", "\u2800", "\u3164", "\x00", "\u00a0 \u2028"]


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_a_text_without_a_visible_character_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(text + "ä" + text)


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc..."),
        ("abe\u0301fgh", 6, "ab..."),  # not before an accent
        ("a👩\u200d👩\u200d👧bcd", 7, "a..."),
        ("a👍\U0001f3fdbcdef", 6, "a👍\U0001f3fd..."),
        ("a👍\U0001f3fdbcdef", 5, "a..."),
        ("abc", 2, "..."),
    ],
    ids=ascii,
)
def test_the_beginning_of_a_text_ends_with_dots(text: str, most: int, short: str) -> None:
    assert shortened(text, most) == short


def test_a_readable_text_has_no_control_characters_but_tabs_and_ends_of_lines() -> None:
    assert readable("a\x00b\x1b[2J\x9b\r\n\tä") == "a\ufffdb\ufffd[2J\ufffd\r\n\tä"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(3, 30))
def test_a_shortened_text_fits_and_is_a_beginning(text: str, most: int) -> None:
    for size in (len, lambda part: len(part.encode())):
        short = shortened(text, most, size)
        assert size(short) <= most
        assert short == text if size(text) <= most else text.startswith(short.removesuffix("..."))
        end = short.removesuffix("...")
        assert short == text or not unicodedata.category(text[len(end)]).startswith("M") or not end


CARD, HIDDEN = "4000000000000002", "400000******0002"


@pytest.mark.parametrize(
    ("text", "without"),
    [
        (f"refund {CARD}", f"refund {HIDDEN}"),
        ("https://me:pass@registry:8081/x", "https://***@registry:8081/x"),
        ("sqlite:////tmp/x, kafka:9092, me@example.com", "sqlite:////tmp/x, kafka:9092, me@example.com"),
        ("Authorization: Bearer abcdefghijklmnop.123", "Authorization: Bearer ***"),
        ("Bearer of bad news", "Bearer of bad news"),
    ],
)
def test_what_is_shown_has_no_card_number_and_no_login(text: str, without: str) -> None:
    assert shown(text) == without


def test_in_data_names_and_values_of_any_depth_are_hidden() -> None:
    data = {"a": [{CARD: int(CARD)}, (CARD, 1.5, True, None)], "n": 12, 3: CARD}
    assert shown_data(data) == {"a": [{HIDDEN: HIDDEN}, [HIDDEN, 1.5, True, None]], "n": 12, 3: HIDDEN}


@pytest.mark.parametrize(
    "name", ["password", "db_password", "Authorization", "x-api-key", "access_token", "CVV", "pin"]
)
def test_the_value_of_a_secrets_name_is_hidden(name: str) -> None:
    assert shown_data({name: "hunter2"}) == {name: "***"}
    assert shown_data({name: None}) == {name: None}


@pytest.mark.parametrize("name", ["passwords_changed", "token", "card_id", "pinned", "secrets", "shipping"])
def test_the_value_of_another_name_stays(name: str) -> None:
    assert shown_data({name: "hunter2"}) == {name: "hunter2"}


def test_where_a_secret_is_may_be_shown() -> None:
    assert shown_data({"secret": {"env": "HOOK"}}) == {"secret": {"env": "HOOK"}}


def test_the_digits_of_a_fraction_are_no_card_number() -> None:
    fraction = 0.9963294000000002
    assert shown_data({"score": fraction, "whole": 4000000000000002, "text": "4000000000000002"}) == {
        "score": fraction,
        "whole": "400000******0002",
        "text": "400000******0002",
    }
