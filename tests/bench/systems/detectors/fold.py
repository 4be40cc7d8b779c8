"""The fold of the benchmark: a card that is in another country than it was last. It misses nothing else."""

from collections.abc import Iterator
from datetime import timedelta

from pyspark.sql import DataFrame

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, fold


class Last(State):
    country: str = ""


def step(last: Last, event: Event, settings: Settings) -> Iterator[Alert]:
    if last.country not in ("", event.country):
        reason = f"in {event.country}, and in {last.country} before"
        yield Alert(reason, evidence=[event.event_id], values={"country": event.country})
    last.country = event.country


def detect(events: DataFrame, settings: Settings, tables: Tables) -> Fold[Last]:
    return fold(events, by="card_id", state=Last, step=step, expires=timedelta(days=1))


detector = Detector(detect, settings=Settings)
