"""Kafka record headers: CloudEvents in binary mode, W3C trace context, dead letters.

Every output record carries its metadata as `ce_*` headers, so a consumer can route and drop repeats
without decoding the value, and `traceparent`, so one id follows a payment from raw record to
notification.
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from lozenge.errors import LozengeError

CONTENT_TYPE = "application/avro"
TRACEPARENT = "traceparent"
ATTEMPT = "attempt"
PLACE = "place"
"""Of a dead letter of upstream: its raw record's topic/partition/offset, never those of an earlier failure."""
FIRST_FAILED_AT = "first-failed-at"
CUT = "lozenge-cut"
"""Of a dead letter that Kafka found too large: how many bytes its value had, of which only the first are left."""
ERROR_PREFIX = "__connect.errors."

Headers = list[tuple[str, bytes]]


def derived_traceparent(topic: str, partition: int, offset: int) -> str:
    """The trace context of a raw record that brought none: a pure function of where it stands."""
    digest = hashlib.sha256(f"{topic}/{partition}/{offset}".encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def cloud_event(*, id: str, source: str, type: str, subject: str, time: datetime, traceparent: str | None) -> Headers:
    """CloudEvents 1.0 attributes of an Avro record as headers."""
    headers = [
        ("content-type", CONTENT_TYPE.encode()),
        ("ce_specversion", b"1.0"),
        ("ce_id", id.encode()),
        ("ce_source", source.encode()),
        ("ce_type", type.encode()),
        ("ce_subject", subject.encode()),
        ("ce_time", _iso(time).encode()),
    ]
    if traceparent:
        headers.append((TRACEPARENT, traceparent.encode()))
    return headers


_WHAT = ("topic", "partition", "offset", "connector.name", "stage", "exception.class.name", "exception.message")
_OWN = {FIRST_FAILED_AT, ATTEMPT, PLACE, TRACEPARENT, *(ERROR_PREFIX + what for what in _WHAT)}


def dead_letter(
    original: Iterable[tuple[str, bytes | None]],
    *,
    topic: str,
    partition: int,
    offset: int,
    app: str,
    stage: str,
    error: BaseException,
    failed_at: datetime,
) -> list[tuple[str, bytes | None]]:
    """The original headers followed by Kafka Connect's error headers.

    A header already there is kept, so the first failure stays on the record; only `attempt` counts up.
    `stage` is decode, normalise, detect, timer, encode or deliver.
    """
    kept = [(name, value) for name, value in original if name != ATTEMPT]
    attempts = [int(value) for name, value in original if name == ATTEMPT and value and value.isdigit()]
    message = error.message if isinstance(error, LozengeError) else str(error)
    added = {
        f"{ERROR_PREFIX}topic": topic,
        f"{ERROR_PREFIX}partition": str(partition),
        f"{ERROR_PREFIX}offset": str(offset),
        f"{ERROR_PREFIX}connector.name": app,
        f"{ERROR_PREFIX}stage": stage,
        f"{ERROR_PREFIX}exception.class.name": type(error).__name__,
        f"{ERROR_PREFIX}exception.message": message[:2000],
        FIRST_FAILED_AT: _iso(failed_at),
    }
    present = {name for name, _ in kept}
    kept += [(name, text.encode()) for name, text in added.items() if name not in present]
    return [*kept, (ATTEMPT, str(max(attempts, default=0) + 1).encode())]


def cut(letter: Iterable[tuple[str, bytes | None]], size: int, most: int) -> list[tuple[str, bytes | None]]:
    """What tells the reason and the way of a dead letter, `most` bytes of each, and that its value had `size` bytes."""
    kept = {name: value and value[:most] for name, value in letter if name in _OWN}
    return [*kept.items(), (CUT, str(size).encode())]


def for_another_try(letter: Iterable[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    """The headers of a dead letter without the reason, which the next failure will say anew.

    Where and when it first failed, and how often, stays.
    """
    reason = {f"{ERROR_PREFIX}{what}" for what in ("stage", "exception.class.name", "exception.message")}
    return [(name, value) for name, value in letter if name not in reason]


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
