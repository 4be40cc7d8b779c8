"""The records of a file, and what each of their fields was found to be."""

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from lozenge.contracts.display_text import shown
from lozenge.errors import PROBLEM, UsageError
from lozenge.nesting import MOST_NESTED, is_flat
from lozenge.process.text_files import bad_byte, text_in

_HINT = "give JSON objects: one a line, in an array, or one alone"
_BLANKS = re.compile(r"[\s,]*")
_LINE = re.compile(r"[^\n]*\S[^\n]*")
MOST_NAMED = 10
"""So many wrong records an error names."""


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
    """The records of a file: JSON objects one after the other, as in JSON lines, or in one array.

    Raises UsageError with the line of each that is none, up to `MOST_NAMED` of them.
    """
    try:
        text = text_in(content)
    except UnicodeDecodeError as error:
        raise UsageError(f"reading records: not UTF-8: {bad_byte(error)}", hint=_HINT) from error
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if text[begin : begin + 1] == "[" and text[end - 1 : end] == "]":
        begin, end = begin + 1, end - 1
    if not text[begin:end].strip():
        raise UsageError("reading records: there are none", hint=_HINT)
    found = _Found(text)
    found.read(begin, end)
    if found.problems and _is_lines(text, begin, end):  # a line that is cut off swallows the next one
        found = _Found(text)
        for line in _LINE.finditer(text, begin, end):
            found.read(*line.span())
    if found.problems:
        raise found.error()
    return found.records


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


class _Found:
    """The records of a text, and what is none, each with its line."""

    def __init__(self, text: str) -> None:
        self.records = list[RawText]()
        self.problems = list[str]()
        self._text, self._number = text, 0
        self._decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)

    def read(self, begin: int, end: int) -> None:
        """Reads values one after the other; after a broken one from the next line on that begins an object."""
        text, at = self._text[begin:end], 0
        while (at := _end_of(_BLANKS, text, at)) < len(text):
            self._number += 1
            try:
                value, after = self._decoder.raw_decode(text, at)
            except json.JSONDecodeError as error:
                self._refuse(begin + at, f"is no JSON: {error.msg} in {self._place(begin + error.pos)}")
                after = _next_object(text, at)
            except (ValueError, RecursionError) as error:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                self._refuse(begin + at, f"is no JSON: {why}")
                after = _next_object(text, at)
            else:
                if not isinstance(value, dict):
                    self._refuse(begin + at, f"is no JSON object, but {shown(text[at:after])[:40]}")
                elif not is_flat(value):
                    self._refuse(begin + at, f"has more than {MOST_NESTED} levels; draft from simpler records")
                else:
                    self.records.append(RawText(text[at:after], value))
            at = after

    def _refuse(self, at: int, why: str) -> None:
        self.problems.append(f"{self._place(at).partition(',')[0]}: record {self._number} {why}")

    def _place(self, at: int) -> str:
        line_begin = self._text.rfind("\n", 0, at) + 1
        return f"line {self._text.count(chr(10), 0, at) + 1}, column {at - line_begin + 1}"

    def error(self) -> UsageError:
        """All of the problems, or the first of many."""
        if len(self.problems) == 1:
            return UsageError(f"reading records: {self.problems[0]}", hint=_HINT)
        named = self.problems[:MOST_NAMED]
        more = [f"and {len(self.problems) - len(named)} more"] if len(self.problems) > len(named) else []
        lines = [f"{PROBLEM}{problem}" for problem in (*named, *more)]
        return UsageError("\n".join([f"reading records: {len(self.problems)} are wrong", *lines]), hint=_HINT)


def _next_object(text: str, at: int) -> int:
    """Where the next line begins with an object; the end of the text if none does."""
    found = text.find("\n{", at)
    return found + 1 if found >= 0 else len(text)


def _is_lines(text: str, begin: int, end: int) -> bool:
    """Whether each line is to be a record: the first one is a whole value."""
    first = _LINE.search(text, begin, end)
    found = _Found(text)
    found.read(*(first.span() if first else (begin, end)))
    return not found.problems


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
