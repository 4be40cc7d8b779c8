"""Hypothesis strategies for data as JSON has it."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
"""All but numbers with a fraction."""


def nested(scalars: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[Any]:
    """Lists and objects of `scalars`, of which there are `most` at the most, or one of them."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=most,
    )
