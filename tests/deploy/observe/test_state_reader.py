"""An entry of a state topic, no matter who wrote it."""

import json

import pytest

from lozenge_deploy.observe.state_reader import entry_of, parts_of


def test_the_key_of_a_fold_has_parts_and_that_of_an_aggregate_is_one() -> None:
    assert parts_of(b'["card_1","m-1",12.5]') == ["card_1", "m-1", 12.5]
    assert parts_of(b"an-alert-id") == ["an-alert-id"]


@pytest.mark.parametrize("key", [b"", b"[", b"[1", b"\xff", b"[" * 5000 + b"]" * 5000, b"[\xff]", b"null"])
def test_a_key_that_no_detector_writes_is_one_text(key: bytes) -> None:
    [part] = parts_of(key)
    assert isinstance(part, str)


@pytest.mark.parametrize(
    "value", [b"", b"{}", b"null", b"[]", b"[1]", b'[{},"soon"]', b"\xff", b"[" * 5000 + b"]" * 5000, b"text"]
)
def test_an_entry_that_no_detector_writes_is_shown_as_it_is(value: bytes) -> None:
    entry = entry_of(b'["card_1"]', value)
    assert (entry["key"], "unreadable" in entry) == (["card_1"], True)
    json.dumps(entry)
    json.dumps(entry_of(b"an-alert-id", value))
