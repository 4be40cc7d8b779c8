"""What a raw format looks like, as data: one TOML file per source says how each canonical field is made.

The transforms are a closed set, so a mapping can be read, checked and trusted without running it;
`transforms.py` holds what each of them does. A value that a transform cannot accept makes the record
a dead letter; a mapping cannot declare that away, except with a `default`.
"""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from lozenge.contracts.money import MINOR_DIGITS
from lozenge_upstream.normalise import countries
from lozenge_upstream.normalise.declarations import (
    IDENTITY_SEPARATOR,
    CaseOf,
    Constant,
    Country,
    Currency,
    Decimal,
    First,
    Join,
    Lookup,
    MinorUnits,
    Skip,
    Step,
    Text,
    TimestampEpoch,
    TimestampIso,
    TimestampMMDDhhmmss,
    TimestampParts,
    TimestampText,
    Token,
    Transform,
    any_element,
)

OPTIONAL = ("transaction_id", "account_id")
"""Fields that a mapping, or a record, may omit."""

_WORDS = {
    "channel": {"pos", "ecom", "atm", "recurring", "other"},
    "auth_result": {"approved", "declined"},
    "country": countries.ALPHA2,
    "currency": set(MINOR_DIGITS),
}

_MCC = "[0-9]{4}"
_Free = Annotated[Text | Join | Lookup | First | CaseOf | Constant, Field(discriminator="transform")]
_Word = Annotated[Lookup | First | CaseOf | Constant, Field(discriminator="transform")]
_Time = TimestampIso | TimestampParts | TimestampText | TimestampEpoch | TimestampMMDDhhmmss


class Fields(BaseModel):
    """How each canonical field is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transaction_id: Annotated[Text | Join, Field(discriminator="transform")] | None = None
    event_time: Annotated[_Time, Field(discriminator="transform")]
    card_id: Token
    account_id: Annotated[Text | Join, Field(discriminator="transform")] | None = None
    merchant_id: _Free
    terminal_id: _Free
    mcc: _Free
    country: Annotated[Country | Lookup | First | CaseOf | Constant, Field(discriminator="transform")]
    amount: Annotated[Decimal | MinorUnits, Field(discriminator="transform")]
    currency: Annotated[Currency | Lookup | First | CaseOf | Constant, Field(discriminator="transform")]
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

    @field_validator("mcc")
    @classmethod
    def _mcc_has_four_digits(cls, spec: _Free) -> _Free:
        if wrong := sorted(word for word in spec.words if not re.fullmatch(_MCC, word)):
            raise ValueError(f"{', '.join(wrong)}: a merchant category has four digits (ISO 18245)")
        if isinstance(spec, Text) and spec.pattern is None:
            return spec.model_copy(update={"pattern": _MCC})
        return spec

    @model_validator(mode="after")
    def _joined_texts_are_readable(self) -> "Fields":
        joined = ((name, spec) for name, spec in self.declared() if isinstance(spec, Join) and name != "transaction_id")
        if bare := [name for name, spec in joined if spec.separator == IDENTITY_SEPARATOR]:
            raise ValueError(f"{', '.join(bare)}: a joined text needs a separator that people can read, such as '-'")
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
    skip: tuple[Skip, ...] = ()
    """Records that are no events and no faults: the first whose conditions hold counts a record under its name."""

    @property
    def paths(self) -> list[str]:
        """Every raw field that this mapping reads, sorted."""
        asked = (condition.path for skip in self.skip for condition in skip.when)
        return sorted({*(path for _, spec in self.fields.declared() for path in spec.paths), *asked})

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """Every regular expression, with the field or the skip that has it."""
        of_fields = [(name, each) for name, spec in self.fields.declared() for each in spec.patterns]
        asked = [(f"skip {skip.name}", c.pattern) for skip in self.skip for c in skip.when if c.pattern is not None]
        return of_fields + asked

    @model_validator(mode="after")
    def _skips_differ(self) -> "Mapping":
        names = [skip.name for skip in self.skip]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"skip: {', '.join(twice)} is declared twice")
        return self

    @model_validator(mode="after")
    def _no_field_holds_another(self) -> "Mapping":
        kinds: dict[tuple[Step, ...], set[str]] = {}
        for path in self.paths:
            way = any_element(path)
            for at in range(len(way)):
                kinds.setdefault(way[:at], set()).add("list" if isinstance(way[at], int) else "object")
            kinds.setdefault(way, set()).add("value")
        if both := [path for path in self.paths if len(kinds[any_element(path)]) > 1]:
            raise ValueError(f"{', '.join(both)} cannot be a value and hold further fields at once")
        if mixed := sorted(".".join(map(str, way)) for way, found in kinds.items() if len(found) > 1):
            raise ValueError(f"{', '.join(mixed)} cannot be a list and an object at once")
        return self
