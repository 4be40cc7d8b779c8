"""A dead letter: the record that failed, and headers that say where it came from and why.

The error headers are those of Kafka Connect. Python and Spark write them by the names here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten

from lozenge.contracts.headers import TRACEPARENT, iso
from lozenge.contracts.record import RecordPosition
from lozenge.errors import LozengeError

SOURCE_TOPIC = "__connect.errors.topic"
SOURCE_PARTITION = "__connect.errors.partition"
SOURCE_OFFSET = "__connect.errors.offset"
APP = "__connect.errors.connector.name"
STAGE = "__connect.errors.stage"
"""decode, normalise, detect, timer, encode or deliver."""
ERROR = "__connect.errors.exception.class.name"
MESSAGE = "__connect.errors.exception.message"
MESSAGE_LENGTH = 2000
FIRST_FAILED_AT = "first-failed-at"
ATTEMPT = "attempt"
ATTEMPT_DIGITS = 9
"""A longer number is not the platform's, and Python reads no number of thousands of digits."""
RAW_POSITION = "raw-position"
"""Of a dead letter of upstream: its raw record's topic/partition/offset, never those of an earlier failure."""
TRUNCATED = "lozenge-truncated"
"""Of a dead letter that was too large for Kafka: the size of its value in bytes, of which only the first are left."""

_REASON = {STAGE, ERROR, MESSAGE}
_OWN = _REASON | {
    *(SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET, APP),
    *(FIRST_FAILED_AT, ATTEMPT, RAW_POSITION, TRACEPARENT),
}
RecordHeaders = Iterable[tuple[str, bytes | None]]

REASON_LENGTH = 120
"""Characters that are enough to distinguish one reason from another."""


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter: at `position` in the topic of its `app`, once at `origin` in `topic`; its error and attempts.

    An `origin` below 0 means that no record failed, but for example a timer. `first_failed_at` is ISO 8601 in UTC,
    or "" where a raw record's Kafka timestamp is no time; `at` is when this dead letter was written.
    """

    position: RecordPosition
    app: str
    topic: str
    origin: RecordPosition
    stage: str
    error: str
    message: str
    attempt: int
    first_failed_at: str
    at: datetime
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def reason(self) -> str:
        """At which stage it failed and why, in a line."""
        message = self.message.strip() or self.error or "no reason was recorded"
        return f"{self.stage}: {shorten(message.splitlines()[0], REASON_LENGTH, placeholder=' ...')}"


def dead_letter_headers(
    original: RecordHeaders,
    *,
    topic: str,
    partition: int,
    offset: int,
    app: str,
    stage: str,
    error: BaseException,
    failed_at: datetime,
) -> list[tuple[str, bytes | None]]:
    """The original headers followed by those of the failure.

    A header that is present is kept, so the first failure stays on the record; only `attempt` counts up.
    """
    kept = [(name, value) for name, value in original if name != ATTEMPT]
    written = [value for name, value in original if name == ATTEMPT and value and len(value) <= ATTEMPT_DIGITS]
    attempts = [int(value) for value in written if value.isdigit()]
    message = error.message if isinstance(error, LozengeError) else str(error)
    added = {
        SOURCE_TOPIC: topic,
        SOURCE_PARTITION: str(partition),
        SOURCE_OFFSET: str(offset),
        APP: app,
        STAGE: stage,
        ERROR: type(error).__name__,
        MESSAGE: message[:MESSAGE_LENGTH],
        FIRST_FAILED_AT: iso(failed_at),
    }
    present = {name for name, _ in kept}
    kept += [(name, text.encode()) for name, text in added.items() if name not in present]
    return [*kept, (ATTEMPT, str(max(attempts, default=0) + 1).encode())]


def truncated_headers(headers: RecordHeaders, size: int, limit: int) -> list[tuple[str, bytes | None]]:
    """The headers of the failure and the trace, `limit` bytes of each, and that the value had `size` bytes."""
    kept = {name: value and value[:limit] for name, value in headers if name in _OWN}
    return [*kept.items(), (TRUNCATED, str(size).encode())]


def replay_headers(headers: RecordHeaders) -> list[tuple[str, bytes | None]]:
    """The headers without the reason, which the next failure adds again.

    The source, the time of the first failure and the attempts stay.
    """
    return [(name, value) for name, value in headers if name not in _REASON]
