"""A dead letter as its readers see it: the record that failed, where it came from, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten

from lozenge.contracts.record import Place

REASON_LENGTH = 120
"""Characters that are enough to distinguish one reason from another."""


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter: at `place` in the topic of its `app`, once at `origin` in `topic`; why, and how often it failed.

    An `origin` below 0 means that no record failed, but for example a timer. `first_failed_at` is ISO 8601 in UTC, `at`
    is when this dead letter was written.
    """

    place: Place
    app: str
    topic: str
    origin: Place
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
