"""Where a TOML file says what: the line of each of its names and elements, for the problems of that file."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

Place = tuple[int | str, ...]
"""The names and indexes that lead to a value, from the outermost table: `("fields", "sum", "path")`."""
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*) | (?P<end>\n) | (?P<mark>[\[\]{}=,.])
    | (?P<text>\"{3}(?:\\.|[^\\])*?\"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\])*" | '[^']*')
    | (?P<bare>[^\s\[\]{}=,.\#"']+)""",
    re.DOTALL | re.VERBOSE,
)


class Problem(NamedTuple):
    """What is wrong in a file, at which place of it, as a sentence; the place is empty for the file as a whole."""

    place: Place
    sentence: str


@dataclass(frozen=True)
class TomlPlaces:
    """The places of a file that TOML accepts, each with its line, from 1."""

    lines: Mapping[Place, int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> "TomlPlaces":
        """Those of a text that `tomllib` has read."""
        scan = _Scan(text)
        scan.document()
        return cls(scan.lines)

    def known(self, place: Place) -> Place:
        """The part of a place that the file has: a validator also names what no person wrote, such as a type."""
        found: Place = ()
        for part in place:
            found = (*found, part) if (*found, part) in self.lines else found
        return found

    def line(self, place: Place) -> int | None:
        """The line of a place, or else that of the nearest around it; None if the file has none of it."""
        return self.lines.get(self.known(place))

    def head(self, file: str, place: Place) -> str:
        """The file and the line of a place, as in `one.toml line 3`; the file alone if it has none of the place."""
        line = self.line(place)
        return file if line is None else f"{file} line {line}"

    def said(self, file: str, problem: Problem) -> str:
        """A problem with its file, its line and its place, as in `one.toml line 3: fields.sum: ...`."""
        known = self.known(problem.place) if self.lines else problem.place
        last = problem.place[-1:] if known[-1:] != problem.place[-1:] else ()
        parts = (self.head(file, problem.place), spelled((*known, *last)), problem.sentence)
        return ": ".join(part for part in parts if part)


def spelled(place: Place) -> str:
    """A place for people: names joined by dots, and indexes from 1, as in `skip 1.when 2.path`."""
    parts = (f" {part + 1}" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).strip(" .")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Scan:
    """One pass over the tokens of a file; TOML has accepted it, so nothing is checked."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self._tokens, line = list[_Token](), 1
        for found in _TOKEN.finditer(text):
            kind = str(found.lastgroup)
            if kind != "blank":
                self._tokens.append(_Token("mark" if kind == "end" else kind, found[0], line))
            line += found[0].count("\n")
        self._at = 0
        self._sizes: dict[Place, int] = {}
        """How many tables each array of tables has so far."""

    def document(self) -> None:
        table: Place = ()
        while (token := self._next()) is not None:
            if token.text == "\n":
                self._at += 1
            elif token.text == "[":
                table = self._header()
            else:
                self._pair(table)

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *marks: str) -> bool:
        """Takes the next token if it is one of these marks."""
        token = self._next()
        found = token is not None and token.kind == "mark" and token.text in marks
        self._at += found
        return found

    def _header(self) -> Place:
        self._take("[")
        is_element, line = self._take("["), self._tokens[self._at].line
        names = self._key()
        place: Place = ()
        for name in names[:-1]:
            place = self._newest((*place, name))
        place = (*place, names[-1])
        if is_element:
            self.lines.setdefault(place, line)
            self._sizes[place] = self._sizes.get(place, 0) + 1
        place = self._newest(place)
        for end in range(1, len(place) + 1):
            self.lines.setdefault(place[:end], line)
        while self._take("]"):
            pass
        return place

    def _newest(self, place: Place) -> Place:
        """The table that a header means: of an array of tables the last one."""
        return (*place, self._sizes[place] - 1) if place in self._sizes else place

    def _key(self) -> list[str]:
        names = list[str]()
        while not names or self._take("."):
            token = self._tokens[self._at]
            self._at += 1
            names.append(token.text if token.kind == "bare" else tomllib.loads(f"name = {token.text}")["name"])
        return names

    def _pair(self, table: Place) -> None:
        line, place = self._tokens[self._at].line, table
        for name in self._key():
            place = (*place, name)
            self.lines.setdefault(place, line)
        self._take("=")
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._take("["):
            for number in count():
                while self._take("\n", ","):
                    pass
                if self._take("]"):
                    return
                self.lines[*place, number] = self._tokens[self._at].line
                self._value((*place, number))
        elif self._take("{"):
            while not self._take("}"):
                if not self._take("\n", ","):
                    self._pair(place)
        else:
            while (token := self._next()) is not None and (token.kind != "mark" or token.text == "."):
                self._at += 1
