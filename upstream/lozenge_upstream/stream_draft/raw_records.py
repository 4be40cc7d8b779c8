"""The records of a file, and what each of their fields was found to be."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from lozenge.errors import UsageError
from lozenge.nesting import MOST_NESTED, is_flat
from lozenge.process.text_files import bad_byte, text_in

_HINT = "give JSON objects: one a line, in an array, or one alone"
_BLANKS = re.compile(r"[\s,]*")


class RawText(NamedTuple):
    """A record as it is written, and what it says; numbers with a fraction as Decimal."""

    text: str
    value: dict[str, Any]


@dataclass
class ObservedField:
    """A field of raw records: its values that are neither null nor blank, in order, and in how many records it has one.

    `lists` are its values that are lists. `kinds` are the types of all its values: `value`, `object` and `list`.
    """

    steps: tuple[str, ...]
    values: list[Any] = field(default_factory=list)
    lists: list[list[Any]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)


def records_in(content: bytes) -> list[RawText]:
    """The records of a file: JSON objects one after the other, as in JSON lines, or in one array. Raises UsageError."""
    try:
        text = text_in(content).strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"reading records: not UTF-8: {bad_byte(error)}", hint=_HINT) from error
    text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not text.strip():
        raise UsageError("reading records: there are none", hint=_HINT)
    return list(_values(text))


def observed(records: list[RawText]) -> dict[str, ObservedField]:
    """Every field by its path in a mapping, in the order in which they come."""
    found: dict[str, ObservedField] = {}
    for record in records:
        _observe(record.value, (), found)
    return found


def path_of(steps: tuple[str, ...]) -> str | None:
    """The path that a mapping has for nested names; None where it can have none."""
    if any(not step or '"' in step for step in steps):
        return None
    plain = r"(?![$/])[^.\[\]\\`\x00-\x1f]+"
    return ".".join(step if re.fullmatch(plain, step) else f'"{step}"' for step in steps)


def _values(text: str) -> Iterator[RawText]:
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)
    at = number = 0
    while (at := _end_of(_BLANKS, text, at)) < len(text):
        number += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"reading records: record {number} is no JSON: {error}", hint=_HINT) from error
        if not isinstance(value, dict):
            raise UsageError(f"reading records: record {number} is no JSON object, but {text[at:end][:40]}", hint=_HINT)
        if not is_flat(value):
            raise UsageError(
                f"reading records: record {number} has more than {MOST_NESTED} levels",
                hint="draft it from simpler records",
            )
        yield RawText(text[at:end], value)
        at = end


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _observe(value: dict[str, Any], above: tuple[str, ...], found: dict[str, ObservedField]) -> None:
    for name, part in value.items():
        steps = (*above, name)
        of = found.setdefault(path_of(steps) or ".".join(steps), ObservedField(steps))
        if isinstance(part, dict):
            of.kinds.add("object")
            _observe(part, steps, found)
        elif isinstance(part, list):
            of.kinds.add("list")
            of.lists.append(part)
        elif part is not None and not (isinstance(part, str) and not part.strip(" ")):
            of.kinds.add("value")
            of.values.append(part)
