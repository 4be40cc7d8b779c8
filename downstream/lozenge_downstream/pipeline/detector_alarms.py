"""Alarms about detectors themselves: one raises more than it may, or has fallen silent against its own history.

They are alerts of the detector "lozenge" about the entity "detector:NAME", and take the way of all others.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from lozenge.contracts.headers import derived_traceparent
from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import HOUR, Alert, Baseline

DETECTOR = "lozenge"
DAY = 86_400.0
LEAST_DAYS = 2.0
"""So much history there must be before silence means anything."""
LEAST_SECONDS = 300.0
"""So long a detector is silent at least: a busy one is, too, while it is updated."""
UNLIKELY = 14.0
"""So many alerts expected and none come: one chance in a million, were they to come by chance (Poisson)."""


def floods(parked: Mapping[str, int], now: float) -> Iterator[Alert]:
    """One alarm an hour for each detector of which alerts were parked now, counted in `parked`."""
    for detector in parked:
        text = (
            f"{detector} raises more than it may. What is beyond is parked: nobody is told, and nothing is lost.\n"
            f"- `lozenge noise ls` counts it, `lozenge noise release {detector}` or `drop` ends it"
        )
        id = uuid5("flood", detector, str(int(now // HOUR)))
        yield _alarm(id, detector, "flood", f"{detector} floods", text, now)


def silences(baselines: Mapping[str, Baseline], now: float) -> Iterator[Alert]:
    """One alarm for each detector that has raised nothing for longer than chance explains."""
    for detector, baseline in baselines.items():
        if detector == DETECTOR or baseline.last_at - baseline.first_at < LEAST_DAYS * DAY:
            continue
        expected = baseline.expected(now)
        if expected >= UNLIKELY and now - baseline.last_at >= LEAST_SECONDS:
            since = datetime.fromtimestamp(baseline.last_at, UTC)
            text = (
                f"{detector} has raised nothing since {since:%Y-%m-%d %H:%M} UTC, where by its history "
                f"{expected:.0f} alerts would have come.\n- `lozenge status {detector}` tells whether it runs and reads"
            )
            id = uuid5("quiet", detector, str(int(baseline.last_at)))
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
