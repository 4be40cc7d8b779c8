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
from lozenge_upstream.normalise.mapping_transforms import (
    Constant,
    Country,
    Currency,
    Decimal,
    First,
    Join,
    Lookup,
    MinorUnits,
    Text,
    TimestampEpoch,
    TimestampIso,
    TimestampMMDDhhmmss,
    Token,
    Transform,
    segments,
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
_Free = Annotated[Text | Lookup | Constant, Field(discriminator="transform")]
_Word = Annotated[Lookup | First | Constant, Field(discriminator="transform")]


class Fields(BaseModel):
    """How each canonical field is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transaction_id: Annotated[Text | Join, Field(discriminator="transform")] | None = None
    event_time: Annotated[TimestampIso | TimestampEpoch | TimestampMMDDhhmmss, Field(discriminator="transform")]
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

    @field_validator("mcc")
    @classmethod
    def _mcc_has_four_digits(cls, spec: Text | Lookup | Constant) -> Text | Lookup | Constant:
        if wrong := sorted(word for word in spec.words if not re.fullmatch(_MCC, word)):
            raise ValueError(f"{', '.join(wrong)}: a merchant category has four digits (ISO 18245)")
        if isinstance(spec, Text) and spec.pattern is None:
            return spec.model_copy(update={"pattern": _MCC})
        return spec

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
        names = {path: segments(path) for path in self.paths}
        both = [
            path
            for path, own in names.items()
            if any(len(other) > len(own) and other[: len(own)] == own for other in names.values())
        ]
        if both:
            raise ValueError(f"{', '.join(both)} cannot be a value and hold further fields at once")
        return self
