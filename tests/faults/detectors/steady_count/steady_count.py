"""Raises an alert at every fiftieth payment of a card, with a checksum over all its payments so far, in their order.

It misses nothing: a payment that is lost, repeated or out of order changes every later checksum.
"""

import zlib
from collections.abc import Iterator
from datetime import timedelta

from pyspark.sql import DataFrame

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold

EVERY = 50


class SteadyCount(Settings):
    """`within` is how long the state of a card without payments is kept."""

    within: Duration = timedelta(days=30)


class Count(State):
    """The payments of one card so far."""

    number: int = 0
    checksum: int = 0


def step(count: Count, event: Event, settings: SteadyCount) -> Iterator[Alert]:
    """Counts a payment."""
    count.number += 1
    count.checksum = zlib.crc32(event.event_id.encode(), count.checksum)
    if count.number % EVERY == 0:
        yield Alert(
            reason=f"payment number {count.number}",
            evidence=[event.event_id],
            values={"number": count.number, "checksum": count.checksum},
        )


def detect(events: DataFrame, settings: SteadyCount, tables: Tables) -> Fold[Count]:
    """All payments."""
    return fold(events, by="card_id", state=Count, step=step, expires=settings.within)


detector = Detector(detect, settings=SteadyCount)
