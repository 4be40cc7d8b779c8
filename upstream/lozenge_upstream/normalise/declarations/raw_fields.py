"""What a mapping may name of a raw record: a field by its path, a part of its text, and a condition on it."""

import re
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class AnyKey(Enum):
    """The step from an object to each of its values, whatever their names are."""

    ANY_KEY = "*"


ANY_KEY = AnyKey.ANY_KEY
Step = str | int | AnyKey
"""The name of a field of an object, the index of an element of a list, or `ANY_KEY`."""
Steps = tuple[Step, ...]
"""The way to a value, from the outermost field."""
ELEMENT = "."
"""The path of an element of a list or a map, where paths begin at it."""

_STEP = r'(?:"[^"]+"|[^."\[\]]+)(?:\[\d{1,4}\])*'
_OF_OTHER_LANGUAGES = r"^\$(?=[.\[]|$)|^/|[\\`]"


def _is_path(path: str) -> str:
    if path == ELEMENT:
        return path
    other = re.search(_OF_OTHER_LANGUAGES, re.sub(r'"[^"]+"', "", path))
    if other or not re.fullmatch(rf"{_STEP}(\.{_STEP})*", path):
        raise ValueError(
            f"{path!r} is no path. Names of nested fields are joined by dots, user.name; a name with other characters "
            'is quoted, "user[name]"; an element of a list has its index from 0, items[0].price'
        )
    return path


JsonPath = Annotated[str, AfterValidator(_is_path)]
"""A JSON field: names joined by dots where the format nests, an index where it lists. A name with a dot is quoted.

`.` is the element itself within the `of` of a list or a map, and nothing elsewhere.
"""


def _is_java(pattern: str) -> str:
    if found := re.search(r"\[\[:\^?(\w+):\]", pattern):
        raise ValueError(f"{found[0]} is POSIX, which Java does not know: write \\p{{{found[1].title()}}}")
    return pattern


JavaPattern = Annotated[str, AfterValidator(_is_java)]
"""A regular expression of Java's for the whole of a text. It is compiled there before it is in force."""


def steps(path: JsonPath) -> Steps:
    """The names and indexes of a path, from the outermost."""
    found = re.findall(r'"([^"]+)"|\[(\d+)\]|([^."\[\]]+)', path)
    return tuple(int(index) if index else quoted or name for quoted, index, name in found)


def any_element(path: JsonPath) -> Steps:
    """The same with 0 for each index: all elements of a list have one type."""
    return tuple(0 if isinstance(step, int) else step for step in steps(path))


def spelled(way: Steps) -> str:
    """A way for people: `items[].price`, `labels.*`."""
    parts = ("[]" if isinstance(step, int) else f".{step.value if isinstance(step, AnyKey) else step}" for step in way)
    return "".join(parts).removeprefix(".")


class _Cut(BaseModel):
    """`length` characters of a text from the character `start` on, the first being 1.

    A number that lost its leading zeros gets them back by `pad`, before it is cut.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: Annotated[int, Field(ge=1, le=128)] = 1
    length: Annotated[int, Field(ge=1, le=128)] | None = None
    pad: Annotated[int, Field(ge=1, le=19)] | None = None


class Slice(_Cut):
    """A raw field, or a part of its text."""

    path: JsonPath


class Condition(Slice):
    """Whether a raw field is one of `values`, is none of `other_than`, has the form of `pattern`, or is `blank`.

    A field that is absent, null or blank is the empty text: none of `other_than`, and blank.
    """

    values: tuple[str, ...] | None = None
    other_than: tuple[str, ...] | None = None
    pattern: JavaPattern | None = None
    blank: bool | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "Condition":
        asked = (self.values, self.other_than, self.pattern, self.blank)
        if sum(each is not None for each in asked) != 1:
            raise ValueError("a condition has one of values, other_than, pattern and blank")
        return self


Conditions = Annotated[tuple[Condition, ...], Field(min_length=1)]
"""All of them hold."""


class Part(_Cut):
    """A part of a joined text: a raw field, a slice of it, or the same `value` always.

    An `optional` one may be absent.
    """

    path: JsonPath | None = None
    optional: bool = False
    value: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] | None = None

    @model_validator(mode="after")
    def _is_a_field_or_a_value(self) -> "Part":
        if (self.path is None) == (self.value is None):
            raise ValueError("a part has a path or a value")
        return self

    @property
    def slice(self) -> Slice | None:
        """The raw field, or the part of it; None if this is a constant."""
        return Slice(path=self.path, start=self.start, length=self.length, pad=self.pad) if self.path else None


Parts = Annotated[tuple[Part, ...], Field(min_length=1)]


SKIP_NAME = r"^[a-z][a-z0-9_]{0,63}$"


class Skip(BaseModel):
    """Records that are no events, and no faults either: counted under this name, and written nowhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=SKIP_NAME)]
    when: Conditions
