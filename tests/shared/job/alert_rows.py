"""A row of alert columns as Spark writes it for a group, but for the entity and the key."""

from datetime import UTC, datetime
from typing import Any

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GROUP_ROW: dict[str, Any] = {
    "severity": "low",
    "score": 0.5,
    "title": "Many",
    "reason": "many",
    "evidence": [],
    "values": None,
    "labels": None,
    "event_time": NOON,
    "trigger": None,
    "closes": NOON,
    "traceparent": None,
    "arrived": None,
}
