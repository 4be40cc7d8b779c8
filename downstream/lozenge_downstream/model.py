"""The values that pass through the notifier's stages: records in, alerts in cases, notifications out.

Times are seconds since the epoch, UTC, unless a name says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

SEVERITIES = ("info", "low", "medium", "high", "critical")
HOUR = 3600.0

RawHeaders = Sequence[tuple[str, bytes | None]]
Number = Callable[[str, int], int]
"""Takes the next `seq` of a (topic, partition)."""


class Classification(StrEnum):
    """What becomes of one record."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    RATE_LIMITED = "rate limited"
    DROPPED = "dropped"
    DEAD_LETTER = "dead letter"


class Status(StrEnum):
    """The status of a case in a notification."""

    OPENED = "opened"
    UPDATED = "updated"
    RESOLVED = "resolved"


class Verdict(StrEnum):
    """An analyst's answer to an alert. A snooze is neither right nor wrong, so it does not change the precision."""

    CONFIRMED = "confirmed"
    FALSE_ALARM = "false_alarm"
    SNOOZE = "snooze"


@dataclass(frozen=True, slots=True)
class ReceivedRecord:
    """One record as it was read from an alert topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


class PublishedAlert(msgspec.Struct, frozen=True):
    """One alert with what its record's headers say. The store keeps it as JSON.

    Routes, silences and inhibition rules match its `labels`. `text` is bounded.
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
        """The entity it is about, such as "user:u-17"."""
        return f"{self.entity_type}:{self.entity_id}"


@dataclass(frozen=True, slots=True)
class ReceivedAlert:
    """One record and its outcome; `reason` is for a person."""

    record: ReceivedRecord
    outcome: Classification
    reason: str
    alert: PublishedAlert | None = None
    dead_letter: "Outgoing | None" = None


@dataclass(slots=True)
class Case:
    """The alerts of one route that have the labels of `group` in common.

    It resolves at `resolves_at`, when its last alert does. `scores` has the highest score of each detector among the
    notified alerts, `severity` is the highest of these alerts. A closed case is never evaluated again.
    """

    id: str
    route: str
    group: Mapping[str, str]
    opened_at: float
    next_evaluation_at: float
    resolves_at: float
    notified_at: float | None = None
    last_evaluated_at: float | None = None
    closed: bool = False
    severity: str = "info"
    scores: dict[str, float] = field(default_factory=dict)
    notification_count: int = 0

    def include(self, alert: PublishedAlert) -> None:
        """Raises severity and scores to those of `alert`."""
        self.scores[alert.detector] = max(self.scores.get(alert.detector, 0.0), alert.score)
        self.severity = max(self.severity, alert.severity, key=rank)

    @property
    def score(self) -> float:
        """The probability that at least one detector is right, if each score were one of its own (noisy or)."""
        wrong = 1.0
        for score in self.scores.values():
            wrong *= 1.0 - score
        return round(1.0 - wrong, 6)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record for Kafka. `seq` is gapless in (topic, partition); `body` is the JSON text for channels."""

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
class Evaluation:
    """The result of evaluating a case: the notified alerts, the muted ones with the reason, and the notification."""

    case: Case
    notified: Sequence[PublishedAlert] = ()
    muted: Mapping[str, str] = field(default_factory=dict)
    outgoing: Outgoing | None = None
    channels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RoutingSource:
    """The routing file that is used: its path and version. Both are "" if there is none."""

    file: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ChannelTrouble:
    """Deliveries of a channel that need a person; `kind` is "disabled", "failed" or "retrying", `error` the last one.

    `at` is when the channel was disabled, when the last delivery failed, or the present time.
    """

    channel: str
    kind: str
    deliveries: int
    error: str
    at: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """How often a detector usually raises alerts.

    `first_at` is the beginning of the minute of its first alert, `last_at` the end of that of its last one. `by_hour`
    has the alerts per hour of the day (24 numbers, UTC).
    """

    first_at: float
    last_at: float
    by_hour: Sequence[float]

    def expected(self, now: float) -> float:
        """How many alerts are expected since its last one."""
        total, at = 0.0, self.last_at
        while at < now:
            end = min(now, (at // HOUR + 1) * HOUR)
            total += self.by_hour[int(at // HOUR) % 24] * (end - at) / HOUR
            at = end
        return total


def rank(severity: str) -> int:
    """The index in SEVERITIES. An unknown severity ranks above all: it is better notified than lost."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def labels_of(raw: Mapping[str, Any]) -> dict[str, str]:
    """The labels of an alert as its record has it. A detector's own labels cannot hide the platform's."""
    own: dict[str, str] = raw["labels"]
    entity = raw["entity"]
    return own | {
        "detector": raw["detector"],
        "release": raw["release"],
        "severity": raw["severity"],
        "entity_type": entity["type"],
        "entity": f"{entity['type']}:{entity['id']}",
    }
