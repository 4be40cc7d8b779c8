"""Scala's values, through py4j."""

from collections.abc import Iterator
from typing import Any


def items(sequence: Any) -> Iterator[Any]:
    """The items of one of Scala's sequences."""
    return (sequence.apply(number) for number in range(sequence.size()))


def declared_field(thing: Any, name: str) -> Any | None:
    """Java's handle of a field of an object, private ones included; None if its class has none of this name."""
    return next((found for found in thing.getClass().getDeclaredFields() if found.getName() == name), None)
