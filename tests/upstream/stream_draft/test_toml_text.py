"""What a draft writes as TOML is what TOML reads."""

import tomllib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge_upstream.stream_draft.toml_text import toml_block, toml_key, toml_value

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_is_read_as_it_was(value: Any) -> None:
    assert tomllib.loads(f"it = {toml_value(value)}") == {"it": value}


@given(TEXT)
def test_a_key_is_read_as_it_was(name: str) -> None:
    assert tomllib.loads(f"{toml_key(name)} = 1") == {name: 1}


@given(TEXT)
def test_a_block_is_read_as_it_was_but_for_the_ends_of_lines_around_it(text: str) -> None:
    read = tomllib.loads(f"it = {toml_block(text)}")["it"]
    assert read.strip("\n") == text.strip("\n")


def test_a_time_is_one_of_toml() -> None:
    assert toml_value(datetime(2026, 3, 1, 12, tzinfo=UTC)) == "2026-03-01T12:00:00Z"
    with pytest.raises(TypeError):
        toml_value(None)
