"""Texts of one value are equal in every store, and no others."""

import pytest

from lozenge.cache.json_values import digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"b":1.50,"a":[1e300]}', f'{{"a": [1{"0" * 300}], "b": 1.5}}', id="as jsonb writes it"),
        pytest.param("-0", "0.0", id="zero"),
        pytest.param('"a\\u0000b"', '"a\ufffdb"', id="NUL, which jsonb has not"),
        pytest.param('"\\u00fc"', '"ü"', id="an escape"),
    ],
)
def test_two_texts_of_one_value_are_equal(one: str, other: str) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", '"1"'),
        ("1", "10"),
        ("1", "-1"),
        ("null", '"null"'),
        ("[1,2]", "[2,1]"),
        ("9007199254740993", "9007199254740992"),
    ],
)
def test_other_values_are_not(one: str, other: str) -> None:
    assert digest(one) != digest(other)
