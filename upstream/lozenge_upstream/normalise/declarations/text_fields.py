"""Texts of a record: copied, joined, replaced by a token, or the same always."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lozenge_upstream.normalise.declarations.raw_fields import Condition, JavaPattern, JsonPath, Parts
from lozenge_upstream.normalise.declarations.transform import OrBlank, Transform, paths_of

IDENTITY_SEPARATOR = "\x1f"
"""Between the parts of an identity; no part holds it."""
CardNumbers = Literal["refuse", "mask", "keep"]
"""What becomes of a text with a card number in it."""


class Text(OrBlank):
    """The text itself; `pattern` is for the whole of it. Java runs it, so it knows `\\p{L}` and `(?<name>...)`.

    With a card number in it the record is refused, or the number is masked. Identifiers of 13 to 19 digits can look
    like one: `keep` takes them.
    """

    transform: Literal["text"]
    pattern: JavaPattern | None = None
    card_numbers: CardNumbers = "refuse"
    pad: Annotated[int, Field(ge=1, le=19)] | None = None
    """A number that lost its leading zeros gets them back, up to so many digits; `742.0` is such a number too."""


class Join(Transform):
    """Several raw fields as one text with `separator` between them; without it, U+001F, which no field holds."""

    transform: Literal["join"]
    parts: Parts
    separator: Annotated[str, Field(pattern=r"^[^\x00-\x1e\x7f]{0,8}$")] = IDENTITY_SEPARATOR
    card_numbers: CardNumbers = "refuse"

    @property
    def paths(self) -> tuple[str, ...]:
        return paths_of(self.parts)

    @property
    def required(self) -> tuple[str, ...]:
        return paths_of(part for part in self.parts if not part.optional)


class ReferencedIdentity(BaseModel):
    """The parts of the identity of another event, and the conditions under which a record has these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parts: Parts
    when: tuple[Condition, ...] = ()


class Reference(Transform):
    """The `event_id` of another event of this source, from the parts of its identity.

    The first of several identities whose conditions all hold counts; without one the record names no other event.
    """

    transform: Literal["reference"]
    of: Annotated[tuple[ReferencedIdentity, ...], Field(min_length=1)]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(
            path for each in self.of for path in (*paths_of(each.parts), *(condition.path for condition in each.when))
        )

    @property
    def required(self) -> tuple[str, ...]:
        first, *others = [paths_of(part for part in each.parts if not part.optional) for each in self.of]
        return tuple(path for path in first if all(path in other for other in others))


class Token(Transform):
    """A card number of 12 to 19 digits, replaced by its keyed token.

    With a `pattern` it is whatever a source has that knows no card numbers, such as the token of its processor;
    `copied` then takes it as it is, for a source and its other readers to have one token. With `lower` upper and lower
    case are one, as in e-mail addresses. `parts` are several fields that name one entity together.
    """

    transform: Literal["token"]
    path: JsonPath | None = None
    parts: Parts | None = None
    pattern: JavaPattern | None = None
    copied: bool = False
    lower: bool = False

    @model_validator(mode="after")
    def _is_one_of_them(self) -> "Token":
        if (self.path is None) == (self.parts is None):
            raise ValueError("a token has a path or parts")
        if self.parts is not None and self.pattern is not None:
            raise ValueError("a token of parts has no pattern")
        if self.copied and self.pattern is None:
            raise ValueError("a token that is copied needs the pattern of such tokens")
        if self.lower and (self.pattern is None or self.copied):
            raise ValueError("lower is for a token of a text with a pattern")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,) if self.path is not None else paths_of(self.parts or ())

    @property
    def required(self) -> tuple[str, ...]:
        return self.paths if self.parts is None else paths_of(part for part in self.parts if not part.optional)


class Constant(Transform):
    """The same value for every record of the source."""

    transform: Literal["constant"]
    value: Annotated[str, Field(min_length=1)]

    @property
    def words(self) -> set[str]:
        return {self.value}
