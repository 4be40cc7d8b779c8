"""Codes and words: by a standard, by a table, or by conditions."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lozenge_upstream.normalise.declarations.raw_fields import Condition, Conditions, Slice
from lozenge_upstream.normalise.declarations.transform import OrBlank, Transform, words_of


class Currency(OrBlank):
    """An ISO 4217 code."""

    transform: Literal["currency"]
    code: Literal["alpha", "numeric"]


class Country(OrBlank):
    """An ISO 3166-1 code: alpha-2 (`alpha`), alpha-3 or numeric."""

    transform: Literal["country"]
    code: Literal["alpha", "alpha3", "numeric"]


class Lookup(OrBlank):
    """A table of the source's words; one that is not in it becomes `default`, or a dead letter without."""

    transform: Literal["lookup"]
    table: Annotated[dict[str, str], Field(min_length=1)]
    default: str | None = None

    @property
    def words(self) -> set[str]:
        return words_of([*self.table.values(), self.default, self.blank])


class WordTable(Slice):
    """Words by the value of a raw field, or of a part of it; `default` for values in no row.

    Only where `when` holds does it count.
    """

    table: Annotated[dict[str, str], Field(min_length=1)]
    default: str | None = None
    when: tuple[Condition, ...] = ()


class First(Transform):
    """The word of the first of several tables that has one; `default` without.

    Without a `default` a record for which no table has a word is a dead letter, or has no value if that is `optional`.
    """

    transform: Literal["first"]
    of: Annotated[tuple[WordTable, ...], Field(min_length=1)]
    default: str | None = None
    optional: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for table in self.of for path in (table.path, *(each.path for each in table.when)))

    @property
    def required(self) -> tuple[str, ...]:
        return () if self.default is not None or self.optional else (self.of[-1].path,)

    @property
    def words(self) -> set[str]:
        defaults = (self.default, *(table.default for table in self.of))
        return words_of([*(word for table in self.of for word in table.table.values()), *defaults])


class Branch(BaseModel):
    """A value, and the conditions under which a record has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: Conditions
    value: Annotated[str, Field(min_length=1)]


class CaseOf(Transform):
    """The value of the first branch whose conditions all hold; `default` if none does.

    Without a `default` such a record is a dead letter, or has no value if that is `optional`.
    """

    transform: Literal["case"]
    of: Annotated[tuple[Branch, ...], Field(min_length=1)]
    default: str | None = None
    optional: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(each.path for branch in self.of for each in branch.when)

    @property
    def required(self) -> tuple[str, ...]:
        return ()

    @property
    def words(self) -> set[str]:
        return words_of([*(branch.value for branch in self.of), self.default])
