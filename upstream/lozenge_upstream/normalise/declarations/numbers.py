"""Numbers and truth values that are no amounts: measurements, counts, flags."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lozenge_upstream.normalise.declarations.transform import FromPath


class Number(FromPath):
    """A JSON number or its text, as the type of the field has it; one that the type cannot hold is refused."""

    transform: Literal["number"]


class Boolean(FromPath):
    """Whether a raw field is one of the words `true` or of the words `false`; JSON's own unless declared."""

    transform: Literal["boolean"]
    true: Annotated[tuple[str, ...], Field(min_length=1)] = ("true",)
    false: Annotated[tuple[str, ...], Field(min_length=1)] = ("false",)

    @model_validator(mode="after")
    def _are_different(self) -> "Boolean":
        if both := sorted({*self.true} & {*self.false}):
            raise ValueError(f"{', '.join(both)} cannot be true and false at once")
        return self
