"""What every transform of a mapping declares: the raw fields that it reads, and the values that it can give."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lozenge_upstream.normalise.declarations.raw_fields import JsonPath, Part


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


class FromPath(Transform):
    path: JsonPath

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)


class OrBlank(FromPath):
    """`blank` is what an absent, null or blank field means; without it such a record is a dead letter."""

    blank: Annotated[str, Field(min_length=1)] | None = None

    @property
    def required(self) -> tuple[str, ...]:
        return self.paths if self.blank is None else ()

    @property
    def words(self) -> set[str]:
        return words_of([self.blank])


def paths_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """The raw fields of a joined text."""
    return tuple(part.path for part in parts if part.path is not None)


def words_of(words: Iterable[str | None]) -> set[str]:
    """The words that are given."""
    return {word for word in words if word is not None}
