"""Whether a fold can run: its arguments before it does, and its state after each event."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from keyword import iskeyword
from typing import Any, TypeVar

import msgspec

from lozenge.durations import LONGEST

encode = msgspec.json.Encoder().encode
"""Whatever a fold stores, its keys and states, as JSON."""

S = TypeVar("S")


def argument_problems(
    by: Sequence[Any], state: Any, functions: Mapping[str, Any], times: Mapping[str, Any]
) -> Iterator[str]:
    """Everything that is wrong with the arguments of `fold(...)`, each with its name."""
    if not by or not all(isinstance(column, str) for column in by):
        yield f"by is {by!r}, which are no names of columns"
    for name, function in functions.items():
        if not callable(function) and (name, function) != ("on_timer", None):
            yield f"{name} is {type(function).__name__}, not a function"
    for name, time in times.items():
        if not isinstance(time, timedelta):
            yield f"{name} is {type(time).__name__}, not timedelta(...)"
        elif not timedelta() <= time <= LONGEST:
            yield f"{name} is {time}: it lies between 0 and {LONGEST.days} days"
    if not isinstance(state, type) or not issubclass(state, msgspec.Struct):
        yield f"state is {state!r}, not a class that derives from lozenge.State"
        return
    try:
        restored(state(), msgspec.json.Decoder(state))
    except (TypeError, ValueError) as error:
        yield f"state is {state.__name__}: {error}"


def column_problems(columns: Sequence[str], by: Sequence[str]) -> Iterator[str]:
    """What of the columns of a fold's events cannot be an attribute of an event, and keys that are no columns."""
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        yield f"its events have the column {', '.join(twice)} more than once"
    odd = [column for column in columns if not column.isidentifier() or iskeyword(column) or column.startswith("_")]
    if odd:
        yield f"no event has an attribute of the name {', '.join(map(repr, odd))}"
    if lost := [column for column in ("event_id", "event_time") if column not in columns]:
        yield f"its events have lost the column {', '.join(lost)}"
    if missing := [column for column in by if column not in columns]:
        yield f"by names {', '.join(missing)}, and its events have no such column"


def restored(state: S, decoder: "msgspec.json.Decoder[S]") -> S:
    """The state as a restart finds it; raises ValueError, or TypeError, if it could not be stored and read again."""
    try:
        return decoder.decode(encode(state))
    except msgspec.ValidationError as error:
        also = "; NaN and infinity are stored as null" if "`null`" in str(error) else ""
        raise ValueError(f"its state cannot be stored: {error}{also}") from None
    except TypeError as error:
        raise TypeError(f"its state cannot be stored: {error}") from None
