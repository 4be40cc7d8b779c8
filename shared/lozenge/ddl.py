"""Reads columns and types as Spark's DDL writes them, without a JVM.

The result is Spark's JSON form of a type: "decimal(18,4)", or a mapping for an array, a map or a struct. Comments are
read and dropped. `tests/spark_contract/test_ddl.py` compares it with Spark's own parser.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

DdlType = str | dict[str, Any]
"""A type in Spark's JSON form."""

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)|(?P<name>[A-Za-z0-9_]+)|`(?P<quoted>(?:[^`]|``)*)`"""
    r"""|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")|(?P<sign><>|[<>(),:])""",
    re.DOTALL,
)
_PLAIN = {
    **{name: name for name in ("boolean", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "binary")},
    "byte": "byte",
    "tinyint": "byte",
    "short": "short",
    "smallint": "short",
    "int": "integer",
    "integer": "integer",
    "long": "long",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "void": "void",
    "variant": "variant",
}
_DECIMAL, _LENGTH = ("decimal", "dec", "numeric"), {"char": "char", "character": "char", "varchar": "varchar"}
_NUMBER = re.compile(r"[0-9]+(e[0-9]+)?[lsydf]?|[0-9]+(e[0-9]+)?bd", re.IGNORECASE)
_PARTS_OF_TIME = (("year", "month"), ("day", "hour", "minute", "second"))
MOST_DIGITS = 38


class DdlError(ValueError):
    """The text is no DDL that Spark takes; the message says where."""


def columns(text: str) -> dict[str, DdlType]:
    """The type of each column of `text`, such as "country string, most decimal(18, 4)".

    A colon may be between name and type. Raises DdlError with the problem of every column.
    """
    return {name: field["type"] for name, field in _columns(text).items()}


def not_null(text: str) -> frozenset[str]:
    """The columns of `text` that are NOT NULL; raises DdlError as `columns` does."""
    return frozenset(name for name, field in _columns(text).items() if not field["nullable"])


def _columns(text: str) -> dict[str, dict[str, Any]]:
    reader = _Reader(text)
    found: dict[str, dict[str, Any]] = {}
    problems = []
    while True:
        try:
            field = reader.field(colon=True)
            if field["name"] in found:
                raise DdlError(f"{field['name']} is there twice")
            found[field["name"]] = field
            if not reader.at_comma_or_end():
                raise DdlError(f"{_text(reader.token)!r} is not expected after {reader.before!r}")
        except DdlError as error:
            problems.append(str(error))
            reader.skip_to_comma()
        if not reader.skip(","):
            break
    if problems:
        raise DdlError("; ".join(problems))
    return found


def data_type(text: str) -> DdlType:
    """The type that Spark reads in `text`: of one value, or a struct of columns; raises DdlError."""
    if not text.strip():
        return {"type": "struct", "fields": []}
    if re.fullmatch(r"\s*\w+\s*", text):
        return cast(DdlType, _whole(text, _Reader.type))
    for read in (_struct, lambda text: _whole(text, _Reader.type)):
        with suppress(DdlError):
            return read(text)
    return _struct(text, colon=True)


def _struct(text: str, *, colon: bool = False) -> DdlType:
    return {"type": "struct", "fields": _fields(text, colon=colon)}


def _fields(text: str, *, colon: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _whole(text, lambda reader: reader.list_of(lambda: reader.field(colon=colon)))
    return found


def _whole(text: str, read: "Callable[[_Reader], Any]") -> Any:
    reader = _Reader(text)
    found = read(reader)
    if reader.token is not None:
        raise DdlError(f"{_text(reader.token)!r} is not expected after {reader.before!r}")
    return found


class _Reader:
    """Reads one text from left to right; `token` is the kind and the text of what comes next, None at the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self.before = ""
        self.token: tuple[str, str] | None = next(self._tokens, None)

    def take(self, *kinds: str) -> str:
        """The next token, which is of one of `kinds`."""
        if self.token is None:
            raise DdlError(f"{_words(kinds)} is missing after {self.before!r}" if self.before else "it names no column")
        kind, text = self.token
        if kind == "unknown":
            raise DdlError(f"{text!r} is not expected after {self.before!r}; an unusual name is in backticks")
        if kind not in kinds:
            raise DdlError(f"{text!r} is not expected: {_words(kinds)} is")
        self.before, self.token = text, next(self._tokens, None)
        return text

    def skip(self, *texts: str) -> bool:
        """Takes the next token if it is one of `texts`, in upper or lower case; whether it is."""
        if self.token is None or self.token[0] not in ("name", "sign") or self.token[1].lower() not in texts:
            return False
        self.take(self.token[0])
        return True

    def at_comma_or_end(self) -> bool:
        """Whether what was read is over."""
        return self.token in (None, ("sign", ","))

    def skip_to_comma(self) -> None:
        """Takes all up to the next comma that is in no brackets."""
        depth = 0
        while self.token is not None and (depth > 0 or not self.at_comma_or_end()):
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(self.token[1], 0)
            self.before, self.token = self.token[1], next(self._tokens, None)

    def sign(self, sign: str) -> None:
        """Takes this sign."""
        if not self.skip(sign):
            raise DdlError(f"{sign!r} is missing after {self.before!r}")

    def list_of(self, read: "Callable[[], Any]") -> list[Any]:
        """What `read` reads, separated by commas."""
        found = [read()]
        while self.skip(","):
            found.append(read())
        return found

    def field(self, *, colon: bool) -> dict[str, Any]:
        """A name and a type, then NOT NULL and COMMENT if they are there."""
        name = self.take("name", "quoted")
        if colon:
            self.skip(":")
        found = {"name": name, "type": self.type(), "nullable": True, "metadata": {}}
        if self.skip("not"):
            if not self.skip("null"):
                raise DdlError("NULL is missing after NOT")
            found["nullable"] = False
        if self.skip("comment"):
            self.take("text")
        return found

    def type(self) -> DdlType:
        """One type."""
        written = self.take("name")
        name = written.lower()
        if name == "array":
            self.sign("<")
            element = self.type()
            self.sign(">")
            return {"type": "array", "elementType": element, "containsNull": True}
        if name == "map":
            self.sign("<")
            key = self.type()
            self.sign(",")
            value = self.type()
            self.sign(">")
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        if name == "struct":
            return {"type": "struct", "fields": self._struct()}
        if name == "interval":
            return self._interval()
        return self._atomic(name, written)

    def _struct(self) -> list[dict[str, Any]]:
        if self.skip("<>"):
            return []
        self.sign("<")
        if self.skip(">"):
            return []
        found = self.list_of(lambda: self.field(colon=True))
        self.sign(">")
        return found

    def _interval(self) -> str:
        for parts in _PARTS_OF_TIME:
            for start, part in enumerate(parts):
                if not self.skip(part):
                    continue
                if not self.skip("to"):
                    return f"interval {part}"
                for later in parts[start + 1 :]:
                    if self.skip(later):
                        return f"interval {part} to {later}"
                raise DdlError(f"a later part of time is missing after {part!r} TO")
        return "interval"

    def _atomic(self, name: str, written: str) -> str:
        numbers = self._numbers()
        if name in _DECIMAL and len(numbers) <= 2:
            precision, scale = (*numbers, *(10, 0)[len(numbers) :])
            if precision > MOST_DIGITS or scale > precision:
                raise DdlError(
                    f"{written}({precision},{scale}): at most {MOST_DIGITS} digits, and no more after the point"
                )
            return f"decimal({precision},{scale})"
        if name in _LENGTH and len(numbers) == 1:
            return f"{_LENGTH[name]}({numbers[0]})"
        if name == "time" and len(numbers) <= 1:
            return f"time({(*numbers, 6)[0]})"
        if name in _PLAIN and not numbers:
            return _PLAIN[name]
        given = f"({','.join(map(str, numbers))})" if numbers else ""
        raise DdlError(f"{written}{given} is no type of Spark")

    def _numbers(self) -> list[int]:
        if not self.skip("("):
            return []
        numbers = self.list_of(lambda: self.take("number"))
        self.sign(")")
        if not all(map(str.isdigit, numbers)):
            raise DdlError(f"{', '.join(numbers)}: only whole numbers in brackets")
        return [int(number) for number in numbers]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            yield "unknown", text[at]
            at += 1
            continue
        at = found.end()
        kind = str(found.lastgroup)
        if kind == "quoted":
            yield kind, found[kind].replace("``", "`")
        elif kind != "blank":
            yield "number" if _NUMBER.fullmatch(found[0]) else kind, found[0]


def _text(token: tuple[str, str] | None) -> str:
    return token[1] if token is not None else ""


def _words(kinds: tuple[str, ...]) -> str:
    words = {"name": "a type", "text": "a text in quotes", "number": "a number"}
    return words[kinds[0]] if len(kinds) == 1 else "a name"
