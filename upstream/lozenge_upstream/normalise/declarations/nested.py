"""Records, lists and maps within an event, made of raw fields by transforms of their own; and any transform at all."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from lozenge_upstream.normalise.declarations.amounts import Decimal, MinorUnits
from lozenge_upstream.normalise.declarations.numbers import Boolean, Number
from lozenge_upstream.normalise.declarations.raw_fields import ANY_KEY, JsonPath, Steps, any_element
from lozenge_upstream.normalise.declarations.text_fields import Constant, Join, Reference, Text, Token
from lozenge_upstream.normalise.declarations.times import (
    TimestampEpoch,
    TimestampIso,
    TimestampMMDDhhmmss,
    TimestampParts,
    TimestampText,
)
from lozenge_upstream.normalise.declarations.transform import Transform
from lozenge_upstream.normalise.declarations.words import CaseOf, Country, Currency, First, Lookup


class RecordOf(Transform):
    """A record of the event: each of its `fields` has a transform of its own."""

    transform: Literal["record"]
    fields: Annotated[dict[str, "AnyTransform"], Field(min_length=1)]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for spec in self.fields.values() for path in spec.paths)

    @property
    def required(self) -> tuple[str, ...]:
        return ()


class Container(Transform):
    """A raw list or object; `of` makes each of its elements. Paths in it begin at the element, which is `.` itself."""

    path: JsonPath
    of: "AnyTransform"

    @model_validator(mode="after")
    def _reads_its_elements(self) -> "Container":
        if next(ways(self.of), None) is None:
            raise ValueError('`of` reads nothing of an element; the path "." is the element itself')
        return self


class ListOf(Container):
    """An array: what `of` makes of each element of a raw list."""

    transform: Literal["list"]


class MapOf(Container):
    """A map: the names of a raw object, each with what `of` makes of its value."""

    transform: Literal["map"]


AnyTransform = Annotated[
    Text
    | Join
    | Reference
    | Token
    | Constant
    | Lookup
    | First
    | CaseOf
    | Country
    | Currency
    | Decimal
    | MinorUnits
    | Number
    | Boolean
    | TimestampIso
    | TimestampParts
    | TimestampText
    | TimestampEpoch
    | TimestampMMDDhhmmss
    | RecordOf
    | ListOf
    | MapOf,
    Field(discriminator="transform"),
]
"""Every transform; `transform` in a file says which."""
for _model in (RecordOf, Container, ListOf, MapOf):
    _model.model_rebuild()


def ways(spec: Transform) -> Iterator[Steps]:
    """The way to every raw field that it reads, also within lists and maps, with 0 and `ANY_KEY` for their elements."""
    return (way for leaf in leaves("", spec) for way in leaf.ways)


def exact_ways(spec: Transform) -> Iterator[Steps]:
    """The same for the raw fields of which a JSON number has to keep all of its digits."""
    exact = Decimal | MinorUnits | Number | TimestampEpoch
    found = leaves("", spec, lambda each: (each.path,) if isinstance(each, exact) else ())
    return (way for leaf in found for way in leaf.ways)


class LeafTransform(NamedTuple):
    """A transform that is no record, list or map: what it makes, by the names that lead there, and what it reads."""

    name: str
    spec: Transform
    ways: tuple[Steps, ...]


def leaves(
    name: str, spec: Transform, paths_of: Callable[[Transform], tuple[str, ...]] = lambda each: each.paths
) -> Iterator[LeafTransform]:
    """Those of which a transform consists; `paths_of` has the paths of each to which the ways lead."""
    if isinstance(spec, RecordOf):
        for inner, each in spec.fields.items():
            yield from leaves(f"{name}.{inner}", each, paths_of)
    elif isinstance(spec, Container):
        for leaf in leaves(name, spec.of, paths_of):
            yield leaf._replace(ways=tuple(_within(spec, way) for way in leaf.ways))
    else:
        yield LeafTransform(name, spec, tuple(map(any_element, paths_of(spec))))


def containers(spec: Transform) -> Iterator[str]:
    """The paths of the raw lists and objects that it reads as such, but for those within others."""
    if isinstance(spec, RecordOf):
        for each in spec.fields.values():
            yield from containers(each)
    elif isinstance(spec, Container):
        yield spec.path


def _within(spec: Container, way: Steps) -> Steps:
    """The way to the end of `way` in an element."""
    return (*any_element(spec.path), 0 if isinstance(spec, ListOf) else ANY_KEY, *way)
