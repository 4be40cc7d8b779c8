"""What may be listed, and by what a version of a list is known."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from lozenge.protocol.content_version import changed_of
from lozenge.protocol.list_entries import ListEntry, decode, problems, quoted, version

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAN = "4000000000000002"
CARD = ListEntry("card_1", "stolen", "ann", NOW)


def changed(**fields: Any) -> ListEntry:
    return msgspec.structs.replace(CARD, **fields)


@pytest.mark.parametrize("entry", [CARD, changed(expires_at=NOW), changed(value="Zoë 商店", reason="y" * 500)])
def test_an_entry_is_read_as_it_was_written(entry: ListEntry) -> None:
    assert decode(entry.value.encode(), entry.encoded()) == entry
    assert not [*problems(entry)]


@dataclass
class Wrong:
    entry: ListEntry
    says: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong(changed(value=""), "value is empty"),
        Wrong(changed(value="\u200b"), "value is empty"),
        Wrong(changed(value=" card_1"), "blanks around it"),
        Wrong(changed(value="card\u200b1"), "invisible character U+200B"),
        Wrong(changed(value="card\n1"), "value 'card\\n1' has the control character U+000A"),
        Wrong(changed(value="x" * 257), "has 257 characters, and 256 at most"),
        Wrong(changed(value=PAN), "value '400000******0002' has a card number; list the token"),
        Wrong(changed(reason=" "), "reason is empty"),
        Wrong(changed(reason=f"it was {PAN}"), "reason 'it was 400000******0002' has a card number"),
        Wrong(changed(reason="a\x1b[2Jb"), "U+001B"),
        Wrong(changed(author=""), "author is empty"),
    ],
    ids=lambda wrong: wrong.says,
)
def test_what_is_wrong_with_an_entry_is_named_and_such_a_record_is_none(wrong: Wrong) -> None:
    assert any(wrong.says in problem for problem in problems(wrong.entry)), [*problems(wrong.entry)]
    assert PAN not in "".join(problems(wrong.entry))
    with pytest.raises(ValueError, match=r"\w"):
        decode(wrong.entry.value.encode(), wrong.entry.encoded())


def test_all_that_is_wrong_with_an_entry_is_named_at_once() -> None:
    assert len([*problems(changed(value="", reason="", author="a\nb"))]) == 3


def test_a_record_under_another_key_and_a_time_without_a_zone_are_no_entries() -> None:
    with pytest.raises(ValueError, match="its key is"):
        decode(b"card_2", CARD.encoded())
    with pytest.raises(msgspec.ValidationError):
        decode(b"card_1", CARD.encoded().replace(b"Z", b""))


def test_equal_entries_say_the_same_by_any_author() -> None:
    assert CARD.equals_but_for_author(changed(author="bob", added_at=NOW + timedelta(days=1)))
    assert not CARD.equals_but_for_author(changed(reason="lost"))
    assert not CARD.equals_but_for_author(changed(expires_at=NOW))


def test_a_version_has_the_offset_and_the_digest_of_the_entries_in_any_order() -> None:
    other = changed(value="card_2")
    assert version(7, [CARD, other]) == version(7, [other, CARD]) != version(7, [CARD])
    assert changed_of(version(137, [CARD])) == 137
    assert version(0, []) == "0-e3b0c44298fc"
    with pytest.raises(ValueError, match="is no version of a list or a table"):
        changed_of("e3b0c44298fc")


def test_a_quoted_text_is_short_and_shows_no_card_number() -> None:
    assert quoted(PAN) == "'400000******0002'"
    assert len(quoted("x" * 1000)) < 70
    assert quoted("a\x1b[2J\ud800").isprintable()
