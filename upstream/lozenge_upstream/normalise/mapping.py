"""What a raw format looks like, as data: one TOML file per source says how each canonical field is made.

The transforms are a closed set, so a mapping can be read, checked and trusted without running it;
`transforms.py` holds what each of them does. A value that a transform cannot accept makes the record
a dead letter; a mapping cannot declare that away, except with a `default`.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from lozenge.contracts.money import MINOR_DIGITS
from lozenge.errors import ConfigError
from lozenge_upstream.normalise import countries

OPTIONAL = ("transaction_id", "account_id")
"""Fields that a mapping, or a record, may omit."""

_WORDS = {
    "channel": {"pos", "ecom", "atm", "recurring", "other"},
    "auth_result": {"approved", "declined"},
    "country": set(countries.ALPHABETIC.values()),
    "currency": set(MINOR_DIGITS),
}

JsonPath = Annotated[str, StringConstraints(pattern=r"^[^.]+(\.[^.]+)*$")]
"""A JSON field, or fields joined by dots where the format nests."""


class Transform(BaseModel):
    """One way to make a canonical field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every raw field it reads."""
        return ()

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
    """The text itself; `pattern` is a regular expression for the whole of it.

    With a card number in it the record is refused. Identifiers of 13 to 19 digits can look like one: `keep` takes them.
    """

    transform: Literal["text"]
    pattern: str | None = None
    card_numbers: Literal["refuse", "keep"] = "refuse"

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return pattern


class Token(_FromPath):
    """A card number of 12 to 19 digits, replaced by its keyed token."""

    transform: Literal["token"]


class Decimal(_FromPath):
    """An amount in major units, as a JSON number or a string: `12.50`."""

    transform: Literal["decimal"]


class Sign(BaseModel):
    """The raw field that separates payments from reversals, and its values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: JsonPath
    plus: tuple[str, ...]
    minus: tuple[str, ...]


class MinorUnits(_FromPath):
    """An amount in minor units of the event's currency: `1250` is 12.50 EUR and 1250 JPY."""

    transform: Literal["minor_units"]
    sign: Sign | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.sign.path) if self.sign else (self.path,)


class TimestampIso(_FromPath):
    """ISO 8601 date and time. One without an offset is read at `offset_default`, or refused if that is absent."""

    transform: Literal["timestamp_iso"]
    offset_default: Annotated[str, StringConstraints(pattern=r"^(Z|[+-]\d\d:\d\d)$")] | None = None


class TimestampMMDDhhmmss(_FromPath):
    """Month to second in UTC; the year is the latest that does not put it in the raw record's future."""

    transform: Literal["timestamp_mmddhhmmss"]


class Currency(_FromPath):
    """An ISO 4217 code."""

    transform: Literal["currency"]
    code: Literal["alpha", "numeric"]


class Country(_FromPath):
    """An ISO 3166-1 code, numeric or alpha-2."""

    transform: Literal["country"]
    code: Literal["alpha", "numeric"]


class Lookup(_FromPath):
    """A table of the source's words; one that is not in it becomes `default`, or a dead letter without."""

    transform: Literal["lookup"]
    table: Annotated[dict[str, str], Field(min_length=1)]
    default: str | None = None

    @property
    def words(self) -> set[str]:
        return {*self.table.values(), *([self.default] if self.default is not None else [])}


class Constant(Transform):
    """The same value for every record of the source."""

    transform: Literal["constant"]
    value: Annotated[str, Field(min_length=1)]

    @property
    def words(self) -> set[str]:
        return {self.value}


_Free = Annotated[Text | Lookup | Constant, Field(discriminator="transform")]
_Word = Annotated[Lookup | Constant, Field(discriminator="transform")]


class Fields(BaseModel):
    """How each canonical field is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transaction_id: Text | None = None
    event_time: Annotated[TimestampIso | TimestampMMDDhhmmss, Field(discriminator="transform")]
    card_id: Token
    account_id: Text | None = None
    merchant_id: _Free
    terminal_id: _Free
    mcc: _Free
    country: Annotated[Country | Lookup | Constant, Field(discriminator="transform")]
    amount: Annotated[Decimal | MinorUnits, Field(discriminator="transform")]
    currency: Annotated[Currency | Lookup | Constant, Field(discriminator="transform")]
    channel: _Word
    auth_result: _Word

    def declared(self) -> Iterator[tuple[str, Transform]]:
        """Every field that this mapping makes, with its transform."""
        for name in type(self).model_fields:
            if (spec := getattr(self, name)) is not None:
                yield name, spec

    @model_validator(mode="after")
    def _only_known_words(self) -> "Fields":
        wrong = [
            f"{name}: {', '.join(sorted(spec.words - _WORDS[name]))} is none of its values"
            for name, spec in self.declared()
            if name in _WORDS and spec.words - _WORDS[name]
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @model_validator(mode="after")
    def _card_number_only_as_token(self) -> "Fields":
        leaks = [n for n, spec in self.declared() if n != "card_id" and self.card_id.path in spec.paths]
        if leaks:
            raise ValueError(f"{', '.join(leaks)} would copy the card number {self.card_id.path}; only a token may")
        return self


class Mapping(BaseModel):
    """One source: its name, its raw topic and its fields.

    `keyed_by_card` declares that the raw topic's key is the card. Only then do all of a card's records lie
    in one raw partition, and its events come out in order however far the partitions are read apart.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    topic: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$")]
    keyed_by_card: bool
    fields: Fields

    @property
    def paths(self) -> list[str]:
        """Every raw field that this mapping reads, sorted."""
        return sorted({path for _, spec in self.fields.declared() for path in spec.paths})

    @model_validator(mode="after")
    def _no_field_holds_another(self) -> "Mapping":
        both = [p for p in self.paths if any(other.startswith(f"{p}.") for other in self.paths)]
        if both:
            raise ValueError(f"{', '.join(both)} cannot be a value and hold further fields at once")
        return self


def load(folder: Path | None = None) -> list[Mapping]:
    """The mappings of this package and of `folder`, by source.

    Raises ConfigError with every problem of every file at once.
    """
    files: list[Traversable] = list(resources.files("lozenge_upstream").joinpath("mappings").iterdir())
    problems = []
    if folder is not None:
        if folder.is_dir():
            files += folder.iterdir()
        else:
            problems.append(f"{folder} is not a folder")
    mappings = []
    for file in files:
        if not file.name.endswith(".toml"):
            continue
        try:
            text = file.read_bytes().decode("utf-8-sig")  # Windows' editors begin UTF-8 with a byte order mark
            mappings.append(Mapping.model_validate(tomllib.loads(text)))
        except ValidationError as error:
            problems += [f"{file.name}: {_path(e['loc'])}{e['msg']}" for e in error.errors(include_url=False)]
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            problems.append(f"{file.name}: not UTF-8: line {line} has the byte 0x{error.object[error.start]:02x}")
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{file.name}: not TOML: {error}")
        except OSError as error:
            problems.append(f"{file.name}: {error.strerror}")
    problems += _repeated("source", (m.source for m in mappings))
    problems += _repeated("topic", (m.topic for m in mappings))
    if problems:
        raise ConfigError(
            "reading the mappings of raw formats", problems=problems, hint="fix the files named; nothing was started"
        )
    return sorted(mappings, key=lambda mapping: mapping.source)


def _path(location: Iterable[str | int]) -> str:
    return "".join(f"{part}: " for part in (".".join(map(str, location)),) if part)


def _repeated(what: str, names: Iterable[str]) -> list[str]:
    return [f"the {what} {name} is declared by {n} files" for name, n in Counter(names).items() if n > 1]
