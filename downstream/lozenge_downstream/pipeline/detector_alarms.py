"""Alarms about detectors: one exceeds its rate limit, or is silent against its own baseline.

They are about the entity "detector:NAME".
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import Baseline, PublishedAlert
from lozenge_downstream.pipeline.alarms import DETECTOR, alarm, hourly_id

DAY = 86_400.0
MIN_BASELINE_DAYS = 2.0
"""The least history from which silence means anything."""
MIN_SILENT_SECONDS = 300.0
"""The shortest silence that raises an alarm: an update also makes a busy detector silent for a while."""
MIN_EXPECTED = 14.0
"""With 14 alerts expected, none by chance has a probability of one in a million (Poisson)."""


def rate_limit_alarms(rate_limited: Mapping[str, int], now: float) -> Iterator[PublishedAlert]:
    """One alarm an hour for each detector with alerts that were rate-limited now, counted in `rate_limited`."""
    for detector in rate_limited:
        text = (
            f"{detector} exceeds its rate limit. The alerts beyond it are stored and not notified.\n"
            f"- `lozenge rate-limits ls` counts them, `lozenge rate-limits release {detector}` notifies them, "
            "`drop` discards them"
        )
        id = hourly_id(now, "rate_limited", detector)
        yield alarm(id, "detector", detector, "rate_limited", f"{detector} exceeds its rate limit", text, now)


def silence_alarms(baselines: Mapping[str, Baseline], now: float) -> Iterator[PublishedAlert]:
    """One alarm for each detector that has been silent for longer than chance explains."""
    for detector, baseline in baselines.items():
        if detector == DETECTOR or baseline.last_at - baseline.first_at < MIN_BASELINE_DAYS * DAY:
            continue
        expected = baseline.expected(now)
        if expected >= MIN_EXPECTED and now - baseline.last_at >= MIN_SILENT_SECONDS:
            since = datetime.fromtimestamp(baseline.last_at, UTC)
            text = (
                f"{detector} has raised no alert since {since:%Y-%m-%d %H:%M} UTC; by its baseline, "
                f"{expected:.0f} were expected.\n- `lozenge status {detector}` shows whether it runs and reads"
            )
            id = uuid5("silent", detector, str(int(baseline.last_at)))
            yield alarm(id, "detector", detector, "silent", f"{detector} is silent", text, now)
