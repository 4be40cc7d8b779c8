"""The transforms that a mapping may name, and the raw fields that each reads; `transforms` has what they do."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

_SEGMENT = r'("[^"]+"|[^."]+)'
_OF_OTHER_LANGUAGES = r"^\$(?=[.\[]|$)|^/|[\[\]\\`]"


def _is_path(path: str) -> str:
    other = re.search(_OF_OTHER_LANGUAGES, re.sub(r'"[^"]+"', "", path))
    if other or not re.fullmatch(rf"{_SEGMENT}(\.{_SEGMENT})*", path):
        raise ValueError(
            f"{path!r} is no path. Names of nested fields are joined by dots, card.pan; one with other characters is "
            'quoted, "card[pan]"; elements of a list cannot be named'
        )
    return path


JsonPath = Annotated[str, AfterValidator(_is_path)]
"""A JSON field, or fields joined by dots where the format nests. A name that has a dot is quoted: `"card.pan"`."""


def _is_java(pattern: str) -> str:
    if found := re.search(r"\[\[:\^?(\w+):\]", pattern):
        raise ValueError(f"{found[0]} is POSIX, which Java does not know: write \\p{{{found[1].title()}}}")
    return pattern


JavaPattern = Annotated[str, AfterValidator(_is_java)]
"""A regular expression of Java's for the whole of a text. It is compiled there before it is in force."""


def segments(path: JsonPath) -> tuple[str, ...]:
    """The names of the fields of a path, from the outermost."""
    return tuple(segment.strip('"') for segment in re.findall(_SEGMENT, path))


class Transform(BaseModel):
    """One way to make a canonical field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every raw field it reads."""
        return ()

    @property
    def required(self) -> tuple[str, ...]:
        """The raw fields without which it gives no value."""
        return self.paths

    @property
    def words(self) -> set[str]:
        """Every value that it is declared to give; empty where the record decides."""
        return set()


class _FromPath(Transform):
    path: JsonPath

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)


class Text(_FromPath):
    """The text itself; `pattern` is for the whole of it. Java runs it, so it knows `\\p{L}` and `(?<name>...)`.

    With a card number in it the record is refused. Identifiers of 13 to 19 digits can look like one: `keep` takes them.
    """

    transform: Literal["text"]
    pattern: JavaPattern | None = None
    card_numbers: Literal["refuse", "keep"] = "refuse"
    pad: Annotated[int, Field(ge=1, le=19)] | None = None
    """A number that lost its leading zeros gets them back, up to so many digits; `742.0` is such a number too."""


class Token(_FromPath):
    """A card number of 12 to 19 digits, replaced by its keyed token.

    With a `pattern` it is whatever a source has that knows no card numbers, such as the token of its processor.
    """

    transform: Literal["token"]
    pattern: JavaPattern | None = None


class Sign(BaseModel):
    """The raw field that separates payments from reversals, and its values. A record with another one is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: JsonPath
    plus: tuple[str, ...]
    minus: tuple[str, ...]

    @model_validator(mode="after")
    def _are_different(self) -> "Sign":
        if both := sorted({*self.plus} & {*self.minus}):
            raise ValueError(f"{', '.join(both)} cannot be payments and reversals at once")
        return self


class Slice(BaseModel):
    """A raw field, or its first `length` characters. A number that lost its leading zeros gets them back by `pad`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: JsonPath
    length: Annotated[int, Field(ge=1, le=128)] | None = None
    pad: Annotated[int, Field(ge=1, le=19)] | None = None


class Credits(Slice):
    """The raw field, or its beginning, whose `values` say that the card gets the amount: a refund."""

    values: Annotated[tuple[str, ...], Field(min_length=1)]


class _Amount(_FromPath):
    """With `sign` another field says whether it is a payment. `invert`: payments are written as negative amounts.

    `credits` turns the sign of refunds, and of their reversals.
    """

    sign: Sign | None = None
    credits: Credits | None = None
    invert: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.required, *((self.credits.path,) if self.credits else ()))

    @property
    def required(self) -> tuple[str, ...]:
        return (self.path, self.sign.path) if self.sign else (self.path,)


class Decimal(_Amount):
    """An amount in major units, as a JSON number or a string: `12.50`, or `1.25E+1` as Java prints it."""

    transform: Literal["decimal"]


class MinorUnits(_Amount):
    """An amount in minor units of the event's currency: `1250` is 12.50 EUR and 1250 JPY.

    `remaining` is what a reversal of a part leaves of the amount; absent, blank or 0 where the whole is reversed.
    """

    transform: Literal["minor_units"]
    remaining: Slice | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (*super().paths, *((self.remaining.path,) if self.remaining else ()))


class TimestampIso(_FromPath):
    """ISO 8601 date and time, in the extended or the basic form; seconds may be absent, as Java omits zero.

    One without an offset is read at `offset_default`, or refused if that is absent.
    """

    transform: Literal["timestamp_iso"]
    offset_default: Annotated[str, StringConstraints(pattern=r"^(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)$")] | None = None


class TimestampEpoch(_FromPath):
    """The time since 1970 in `unit`, as a JSON number or a string; of seconds also with a fraction."""

    transform: Literal["timestamp_epoch"]
    unit: Literal["s", "ms", "us", "ns"]


class TimestampMMDDhhmmss(_FromPath):
    """Month to second in UTC; the year is the latest that puts it no more than 31 days after the raw record."""

    transform: Literal["timestamp_mmddhhmmss"]


class Currency(_FromPath):
    """An ISO 4217 code."""

    transform: Literal["currency"]
    code: Literal["alpha", "numeric"]


class Country(_FromPath):
    """An ISO 3166-1 code: alpha-2 (`alpha`), alpha-3 or numeric."""

    transform: Literal["country"]
    code: Literal["alpha", "alpha3", "numeric"]


class Lookup(_FromPath):
    """A table of the source's words; one that is not in it becomes `default`, or a dead letter without.

    `blank` is what an absent or blank field means; without it such a record is a dead letter.
    """

    transform: Literal["lookup"]
    table: Annotated[dict[str, str], Field(min_length=1)]
    default: str | None = None
    blank: str | None = None

    @property
    def required(self) -> tuple[str, ...]:
        return self.paths if self.blank is None else ()

    @property
    def words(self) -> set[str]:
        return {*self.table.values(), *(word for word in (self.default, self.blank) if word is not None)}


class Part(Slice):
    """A part of a joined text. An `optional` one may be absent."""

    optional: bool = False


class Join(Transform):
    """Several raw fields as one text, joined by U+001F, which no field holds."""

    transform: Literal["join"]
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(part.path for part in self.parts)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(part.path for part in self.parts if not part.optional)


class WordTable(Slice):
    """Words by the value of a raw field, or of its first `length` characters; `default` for values in no row."""

    table: Annotated[dict[str, str], Field(min_length=1)]
    default: str | None = None


class First(Transform):
    """The word of the first of several tables that has one; `default` without.

    Without a `default` a record for which no table has a word is a dead letter.
    """

    transform: Literal["first"]
    of: Annotated[tuple[WordTable, ...], Field(min_length=1)]
    default: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(table.path for table in self.of)

    @property
    def required(self) -> tuple[str, ...]:
        return () if self.default is not None else (self.of[-1].path,)

    @property
    def words(self) -> set[str]:
        defaults = (self.default, *(table.default for table in self.of))
        words = {word for table in self.of for word in table.table.values()}
        return words | {word for word in defaults if word is not None}


class Constant(Transform):
    """The same value for every record of the source."""

    transform: Literal["constant"]
    value: Annotated[str, Field(min_length=1)]

    @property
    def words(self) -> set[str]:
        return {self.value}
