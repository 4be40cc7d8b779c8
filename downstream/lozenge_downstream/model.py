"""What passes through the notifier's stages: records in, alerts gathered into cases, notifications out.

Times are seconds since the epoch, UTC, unless a name says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

APP = "downstream"
"""The notifier's name in consumer groups, client ids, headers, metrics and logs."""
SEVERITIES = ("info", "low", "medium", "high", "critical")
HOUR = 3600.0

RawHeaders = Sequence[tuple[str, bytes | None]]
Number = Callable[[str, int], int]
"""Takes the next `seq` of a (topic, partition)."""


class Outcome(StrEnum):
    """What becomes of one record."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    PARKED = "parked"
    DROPPED = "dropped"
    DEAD_LETTER = "dead letter"


class Status(StrEnum):
    """What a notification says of its case."""

    OPENED = "opened"
    UPDATED = "updated"
    RESOLVED = "resolved"


class Verdict(StrEnum):
    """What a person may say of an alert; a snooze does not say whether it was right, and counts towards nothing."""

    CONFIRMED = "confirmed"
    FALSE_ALARM = "false_alarm"
    SNOOZE = "snooze"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it came from an alert topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


class Alert(msgspec.Struct, frozen=True):
    """One alert with what is known beside it; as JSON it is the store's memory of it.

    `labels` are what routes, silences and inhibitions match. `text` is bounded.
    """

    id: str
    detector: str
    release: str
    entity_type: str
    entity_id: str
    severity: str
    score: float
    title: str
    text: str
    event_time: datetime
    detected_at: float
    received_at: float
    traceparent: str
    labels: dict[str, str]

    @property
    def subject(self) -> str:
        """What it is about, such as "card:c-17"."""
        return f"{self.entity_type}:{self.entity_id}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One record and what became of it; `reason` is for a person."""

    record: Record
    outcome: Outcome
    reason: str
    alert: Alert | None = None
    letter: "Outgoing | None" = None


@dataclass(slots=True)
class Case:
    """Alerts of one route that have the labels of `group` in common.

    `told_at` is when it was last told, `looked_at` when that was last thought about, `due_at` when it will be
    next, `over_at` when its last alert counts as over. `scores` has each detector's highest score among the
    alerts that were told, `severity` their worst. It is closed when nothing more can come of it.
    """

    id: str
    route: str
    group: Mapping[str, str]
    opened_at: float
    due_at: float
    over_at: float
    told_at: float | None = None
    looked_at: float | None = None
    closed: bool = False
    severity: str = "info"
    scores: dict[str, float] = field(default_factory=dict)
    tellings: int = 0

    def include(self, alert: Alert) -> None:
        """Raises severity and scores to those of `alert`."""
        self.scores[alert.detector] = max(self.scores.get(alert.detector, 0.0), alert.score)
        self.severity = max(self.severity, alert.severity, key=rank)

    @property
    def score(self) -> float:
        """Of all detectors together: how likely at least one is right, were each right by chance (noisy or)."""
        wrong = 1.0
        for score in self.scores.values():
            wrong *= 1.0 - score
        return round(1.0 - wrong, 6)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record for Kafka. `seq` is gapless in (topic, partition); `body` is what channels are given."""

    topic: str
    partition: int
    seq: int
    id: str
    key: bytes | None
    value: bytes | None
    headers: RawHeaders
    detected_at: float | None = None
    case_id: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Telling:
    """What a look at a case came to: what is told of it to whom, and what waits on, each with the reason."""

    case: Case
    told: Sequence[Alert] = ()
    muted: Mapping[str, str] = field(default_factory=dict)
    outgoing: Outgoing | None = None
    channels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
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


def rank(severity: str) -> int:
    """Its place in SEVERITIES; one that nobody knows stands above all: better told than lost."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def labels_of(raw: Mapping[str, Any]) -> dict[str, str]:
    """What an alert, as its record has it, is routed by; the detector's own labels cannot hide the platform's."""
    own: dict[str, str] = raw["labels"]
    entity = raw["entity"]
    return own | {
        "detector": raw["detector"],
        "release": raw["release"],
        "severity": raw["severity"],
        "entity_type": entity["type"],
        "entity": f"{entity['type']}:{entity['id']}",
    }
