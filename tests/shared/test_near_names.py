"""The names that somebody may have meant come first, however many there are."""

import pytest

from lozenge.near_names import near_hint, near_names

TOPICS = ["AUTH-ISO", "AUTH-JSON", "pay.alerts.large_amount.v1", "pay.canonical.auth.v1", "pay.canonical.login.v1"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        pytest.param("auth-json", "AUTH-JSON", id="another case"),
        pytest.param("pay.cannonical.auth.v1", "pay.canonical.auth.v1", id="misspelt"),
        pytest.param("large_amount", "pay.alerts.large_amount.v1", id="a part"),
    ],
)
def test_the_most_alike_is_the_first(name: str, first: str) -> None:
    assert near_names(name, reversed(TOPICS))[0] == first


def test_equally_alike_ones_are_in_order_and_no_more_than_the_most() -> None:
    assert near_names("pay.", reversed(TOPICS), 2) == TOPICS[2:4]


@pytest.mark.parametrize("name", ["", "zzz"])
def test_what_is_like_nothing_has_none(name: str) -> None:
    assert near_names(name, TOPICS) == []


def test_a_hint_names_what_is_near_or_says_nothing() -> None:
    assert near_hint("limts", ["limits", "cards"]) == "near to it: limits"
    assert near_hint("limts", ["cards"]) == ""
