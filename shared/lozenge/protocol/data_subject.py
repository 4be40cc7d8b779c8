"""Whose records are erased: one value of an entity key, and how it is found in texts and bytes.

In a text the value counts as a whole word, so `card_1` is not found in `card_12`. Bytes may be of any form, such as
Avro, where the length before a text may look like part of a word: there it counts wherever it is.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lozenge.errors import UsageError

ERASED = "erased"
"""What records of others have in place of the value. It is never longer than the value."""
SHORTEST = 8
"""A shorter value would be found in records that do not mean it."""
_DIGEST_DIGITS = 16


@dataclass(frozen=True)
class DataSubject:
    """The entity `key` with the id `value`."""

    key: str
    value: str

    @classmethod
    def checked(cls, key: str, value: str) -> "DataSubject":
        """The same; raises UsageError for a value that other words may contain."""
        if len(value) < SHORTEST or not value.isprintable() or {*value} & {'"', "\\"}:
            raise UsageError(
                f"erasing a {key}: its value has {len(value)} characters, or some that are in no id",
                hint=f"an id that can be erased has {SHORTEST} characters at least, without quotes and backslashes",
            )
        return cls(key, value)

    @property
    def name(self) -> str:
        """How alerts, cases and feedback name it: "card:4711"."""
        return f"{self.key}:{self.value}"

    @property
    def digest(self) -> str:
        """What an audit log has of it: 16 hexadecimal digits, from which an id of many digits is not found again."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:_DIGEST_DIGITS]

    def is_in(self, text: str) -> bool:
        """Whether a text has the value as a word."""
        return self.value in text and self._word.search(text) is not None

    def is_in_bytes(self, data: bytes) -> bool:
        """Whether bytes have the value anywhere."""
        return self.value.encode() in data

    def is_in_data(self, data: Any) -> bool:
        """Whether any text, name or bytes within lists, tuples and dictionaries has it."""
        match data:
            case str():
                return self.is_in(data)
            case bytes():
                return self.is_in_bytes(data)
            case dict():
                return any(self.is_in_data(name) or self.is_in_data(part) for name, part in data.items())
            case list() | tuple():
                return any(map(self.is_in_data, data))
        return False

    def erased_from(self, text: str) -> str:
        """The text with `ERASED` in place of the value."""
        return self._word.sub(ERASED, text) if self.value in text else text

    def erased_from_data(self, data: Any) -> Any:
        """The same data with `erased_from` texts and names; bytes that have the value are None."""
        match data:
            case str():
                return self.erased_from(data)
            case bytes():
                return None if self.is_in_bytes(data) else data
            case dict():
                return {self.erased_from_data(name): self.erased_from_data(part) for name, part in data.items()}
            case list():
                return [self.erased_from_data(part) for part in data]
            case tuple():
                return tuple(self.erased_from_data(part) for part in data)
        return data

    @cached_property
    def _word(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w){re.escape(self.value)}(?!\w)")
