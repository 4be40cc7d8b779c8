"""Ids are UUIDs of version 5, as every other implementation makes them."""

import uuid

import pytest

from lozenge.contracts import ids


@pytest.mark.parametrize("number", range(50))  # all variants, and digits of every kind
def test_an_id_is_what_the_standard_library_makes(number: int) -> None:
    parts = ("large_amount", "card", f"card_{number}", "ä\x00💳")
    made = ids.uuid5(*parts)
    assert made == str(uuid.uuid5(ids.NAMESPACE, "\x1f".join(parts)))
    assert uuid.UUID(made).version == 5
