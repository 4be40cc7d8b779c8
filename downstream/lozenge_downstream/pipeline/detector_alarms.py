"""Alarms about detectors themselves: one raises more than it may, or has fallen silent against its own history.

They are alerts of the detector "lozenge" about the entity "detector:NAME", and take the way of all others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lozenge.contracts.headers import derived_traceparent
from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import Alert

DETECTOR = "lozenge"
HOUR, DAY = 3600.0, 86_400.0
LEAST_DAYS = 2.0
"""So much history there must be before silence means anything."""
LEAST_SECONDS = 300.0
"""So long a detector is silent at least: a busy one is, too, while it is updated."""
UNLIKELY = 14.0
"""So many alerts expected and none come: one chance in a million, were they to come by chance (Poisson)."""


@dataclass(frozen=True, slots=True)
class Habit:
    """How a detector usually is: the beginning of the minute of its first alert, the end of that of its last one, and
    how many it raises in each hour of a day (24 numbers, UTC)."""

    first_at: float
    last_at: float
    by_hour: Sequence[float]

    def expected(self, now: float) -> float:
        """How many alerts should have come since its last one."""
        total, at = 0.0, self.last_at
        while at < now:
            end = min(now, (at // HOUR + 1) * HOUR)
            total += self.by_hour[int(at // HOUR) % 24] * (end - at) / HOUR
            at = end
        return total


def floods(parked: Mapping[str, int], now: float) -> Iterator[Alert]:
    """One alarm an hour for each detector of which alerts were parked now, counted in `parked`."""
    for detector in parked:
        text = (
            f"{detector} raises more than it may. What is beyond is parked: nobody is told, and nothing is lost.\n"
            f"- `lozenge noise ls` counts it, `lozenge noise release {detector}` or `drop` ends it"
        )
        id = uuid5("flood", detector, str(int(now // HOUR)))
        yield _alarm(id, detector, "flood", f"{detector} floods", text, now)


def silences(habits: Mapping[str, Habit], now: float) -> Iterator[Alert]:
    """One alarm for each detector that has raised nothing for longer than chance explains."""
    for detector, habit in habits.items():
        if detector == DETECTOR or habit.last_at - habit.first_at < LEAST_DAYS * DAY:
            continue
        expected = habit.expected(now)
        if expected >= UNLIKELY and now - habit.last_at >= LEAST_SECONDS:
            since = datetime.fromtimestamp(habit.last_at, UTC)
            text = (
                f"{detector} has raised nothing since {since:%Y-%m-%d %H:%M} UTC, where by its history "
                f"{expected:.0f} alerts would have come.\n- `lozenge status {detector}` tells whether it runs and reads"
            )
            id = uuid5("quiet", detector, str(int(habit.last_at)))
            yield _alarm(id, detector, "quiet", f"{detector} has fallen silent", text, now)


def _alarm(id: str, detector: str, kind: str, title: str, text: str, now: float) -> Alert:
    return Alert(
        id=id,
        detector=DETECTOR,
        release="",
        entity_type="detector",
        entity_id=detector,
        severity="high",
        score=1.0,
        title=title,
        text=text,
        event_time=datetime.fromtimestamp(now, UTC),
        detected_at=now,
        received_at=now,
        traceparent=derived_traceparent(id, 0, 0),
        labels={
            "detector": DETECTOR,
            "alarm": kind,
            "severity": "high",
            "entity_type": "detector",
            "entity": f"detector:{detector}",
        },
    )
