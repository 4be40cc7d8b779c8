"""The entries of a reference list: records of the list's topic, which people change and detectors look up.

The key of a record is the value that is listed. A record without a value removes the entry.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated

import msgspec

from lozenge.contracts.card_numbers import has_card_number, masked
from lozenge.contracts.display_text import is_blank, shortened
from lozenge.protocol import content_version

COLUMNS = "value string, reason string, author string, added_at timestamp, expires_at timestamp"
"""What a detector gets of each entry, as Spark DDL; no expiry is null."""
LONGEST_VALUE, LONGEST_TEXT = 256, 500
"""Characters of a value, and of a reason or an author."""
_QUOTED = 60
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class ListEntry(msgspec.Struct, frozen=True):
    """One value of a list, by whom and why it was added, and the event time from which it no longer counts."""

    value: str
    reason: str
    author: str
    added_at: Moment
    expires_at: Moment | None = None

    def encoded(self) -> bytes:
        """The value of its record: equal entries have equal bytes."""
        return msgspec.json.encode(self)

    def equals_but_for_author(self, other: "ListEntry") -> bool:
        """Whether both list the same value for the same reason and until the same time; author and date may differ."""
        return (self.value, self.reason, self.expires_at) == (other.value, other.reason, other.expires_at)


def decode(key: bytes, value: bytes) -> ListEntry:
    """The entry in a record; raises ValueError for any other record."""
    entry = _DECODER.decode(value)
    if key != entry.value.encode():
        raise ValueError(f"its key is {key!r}, its value {quoted(entry.value)}")
    if problem := next(problems(entry), None):
        raise ValueError(problem)
    return entry


_DECODER = msgspec.json.Decoder(ListEntry)


def problems(entry: ListEntry) -> Iterator[str]:
    """Everything that is wrong with the texts of an entry; a card number in them is masked here."""
    yield from _text_problems("value", entry.value, LONGEST_VALUE)
    if invisible := [sign for sign in entry.value if unicodedata.category(sign) == "Cf"]:
        yield f"value {quoted(entry.value)} has the invisible character U+{ord(invisible[0]):04X}"
    if entry.value != entry.value.strip() and not is_blank(entry.value):
        yield f"value {quoted(entry.value)} has blanks around it"
    yield from _text_problems("reason", entry.reason, LONGEST_TEXT)
    yield from _text_problems("author", entry.author, LONGEST_TEXT)


def quoted(text: str) -> str:
    """The text for a message: without card numbers, and not longer than a line."""
    return ascii(shortened(masked(text), _QUOTED)) if not text.isprintable() else repr(shortened(masked(text), _QUOTED))


def version(changed: int, entries: Iterable[ListEntry]) -> str:
    """The version that a list has after the records before offset `changed`, such as "137-9f31c2d4ab01"."""
    ordered = sorted(entries, key=lambda entry: entry.value)
    return content_version.version(changed, (entry.encoded() for entry in ordered))


def _text_problems(name: str, text: str, longest: int) -> Iterator[str]:
    if is_blank(text):
        yield f"{name} is empty"
        return
    if len(text) > longest:
        yield f"{name} {quoted(text)} has {len(text)} characters, and {longest} at most are taken"
    if odd := [sign for sign in text if unicodedata.category(sign) in _UNPRINTABLE]:
        yield f"{name} {quoted(text)} has the control character U+{ord(odd[0]):04X}"
    if has_card_number(text):
        yield f"{name} {quoted(text)} has a card number; list the token that events have in its place"
