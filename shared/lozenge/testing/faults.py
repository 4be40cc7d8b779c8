"""Difficult input made of good input: repeats, late and disordered arrival, unexpected values."""

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import TEXT, Field
from lozenge.streams.union_schema import STREAM
from lozenge.testing.events import CompleteEvent, PartialEvent, events, the_stream
from lozenge.testing.runner import AlertRecord

_ODD_TEXTS = ("", "%s \u00e9\U0001f4b3 '\"\\")
_MAX_DIVIDED = 6
"""How many alerting groups are divided by further batches, each of which costs a tenth of a second."""


def repeated(partials: Iterable[PartialEvent], stream: StreamDefinition | None = None) -> list[CompleteEvent]:
    """Every event twice in a row, as after a producer's retry."""
    return [event for event in events(partials, stream) for _ in range(2)]


def late(partials: Iterable[PartialEvent], stream: StreamDefinition | None = None) -> list[CompleteEvent]:
    """The first event arrives last, with its own event time."""
    first, *others = events(partials, stream)
    return [*others, first]


def shuffled(
    partials: Iterable[PartialEvent], seed: int = 1, stream: StreamDefinition | None = None
) -> list[CompleteEvent]:
    """The events in an order that does not depend on their times."""
    complete = events(partials, stream)
    Random(seed).shuffle(complete)
    return complete


def hostile(entity: str = "hostile", stream: StreamDefinition | None = None) -> list[CompleteEvent]:
    """Events of one entity with values that the schema allows and nobody expects. A detector processes them all.

    The entity is the stream's first key. There is an event for every value of each field that is not a text, one with
    all texts empty, one with all texts odd, and one long ago; of several streams, of each.
    """
    of = the_stream(stream)
    key = of.column("")
    values: list[PartialEvent] = []
    for each in of.members or (of,):
        named = {STREAM: each.name} if of.members else {}
        values += [named | value for value in _hostile([field for field in each.fields if field.name != key])]
    return events(({**value, key: entity, "event_id": f"hostile-{n}"} for n, value in enumerate(values)), of)


def _hostile(fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    yield from ({field.name: value} for field in fields for value in _odd(field))
    yield from ({field.name: text for field in fields if field.kind == TEXT} for text in _ODD_TEXTS)
    yield {"at": "-20000d"}


def _odd(field: Field) -> list[Any]:
    odd: list[Any] = [None] if field.optional else []
    match field.kind:
        case "decimal":
            largest = Decimal((0, (9,) * field.type["precision"], -field.type.get("scale", 0)))
            odd += [Decimal(0), -largest, largest]
        case "int" | "long":
            odd += [0, -1, 2**31 - 1 if field.kind == "int" else 2**63 - 1]
        case "float" | "double":
            odd += [0.0, -0.0, math.inf, math.nan]
        case "enum":
            odd += [field.type["symbols"][-1]]
        case "boolean":
            odd += [True]
        case "array":
            odd += [[]]
        case "map":
            odd += [{}]
    return odd


def dividing_ends(events: Sequence[CompleteEvent], alerts: Sequence[AlertRecord]) -> Iterator[int]:
    """After how many events a batch ends between a group's threshold crossing and the last event that it counts.

    Which events a group counts is in no alert. Those are taken that have its entity in any field and are not later than
    the alert. The threshold crossing is at one of them: a batch ends before the last one, before the
    middle one and after it.
    """
    for alert in alerts[:_MAX_DIVIDED]:
        counted = [
            number
            for number, event in enumerate(events)
            if alert.entity in event.values() and event["event_time"] <= alert.event_time
        ]
        if counted:
            middle = counted[len(counted) // 2]
            yield from (counted[-1], middle, middle + 1)
