"""Kafka record headers: CloudEvents in binary mode and W3C trace context.

Every output record carries its metadata as `ce_*` headers, so a consumer can route and drop repeats
without decoding the value, and `traceparent`, so one id follows a payment from raw record to
notification.
"""

import hashlib
from datetime import UTC, datetime

CONTENT_TYPE = "application/avro"
TRACEPARENT = "traceparent"
Headers = list[tuple[str, bytes]]


def derived_traceparent(topic: str, partition: int, offset: int) -> str:
    """The trace context of a raw record without one: a pure function of its position."""
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
        ("ce_time", iso(time).encode()),
    ]
    if traceparent:
        headers.append((TRACEPARENT, traceparent.encode()))
    return headers


def iso(time: datetime) -> str:
    """`time` in UTC, as ISO 8601 with microseconds."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
