"""What passes through the notifier's stages: a record in, a decision about it, and what that sends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

RawHeaders = Sequence[tuple[str, bytes | None]]
Number = Callable[[str, int], int]
"""Takes the next `seq` of a (topic, partition)."""


class Outcome(StrEnum):
    """What becomes of one record."""

    NOTIFIED = "notified"
    COLLAPSED = "collapsed"
    DEAD_LETTER = "dead letter"


class Reason(StrEnum):
    """Why; stored with every decision. A dead letter's reason is its error."""

    FIRST = "first alert with this id"
    REPEAT = "an alert with this id was decided before"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it came from an alert topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: RawHeaders


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record for Kafka. `seq` is gapless in (topic, partition); `detected_at` in seconds since the epoch."""

    topic: str
    partition: int
    seq: int
    id: str
    key: bytes | None
    value: bytes | None
    headers: RawHeaders
    detected_at: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One notification for one webhook; `body` stays the same over all attempts."""

    webhook: str
    notification_id: str
    body: str
    detected_at: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The whole way of one record: outcome, reason, and what it sends."""

    record: Record
    outcome: Outcome
    reason: str
    alert_id: str | None = None
    notification_id: str | None = None
    outgoing: Outgoing | None = None
    messages: tuple[Message, ...] = ()
