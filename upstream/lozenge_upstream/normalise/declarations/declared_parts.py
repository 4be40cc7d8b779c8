"""Everything that a mapping declares, each with its place in the file."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from lozenge.toml_places import Place


def parts_of(place: Place, declared: Any) -> Iterator[tuple[Place, BaseModel]]:
    """What is declared at a place, and all within it: transforms, conditions, slices, tables."""
    if isinstance(declared, BaseModel):
        yield place, declared
        for name in type(declared).model_fields:
            yield from parts_of((*place, name), getattr(declared, name))
    elif isinstance(declared, Mapping):
        for name, part in declared.items():
            yield from parts_of((*place, name), part)
    elif isinstance(declared, tuple):
        for number, part in enumerate(declared):
            yield from parts_of((*place, number), part)
