"""The alerts of a detector as a stream, and alerts as its job writes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lozenge.streams.alert_stream import alert_stream

LARGE = alert_stream("large_amount", "card")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def alert(number: int, card: str = "card_1", *, entity_type: str = "card", **more: Any) -> dict[str, Any]:
    """An alert of `large_amount`; `number` makes its id."""
    return {
        "alert_id": f"alert-{number}",
        "detector": "large_amount",
        "release": "r1",
        "settings_digest": "d1",
        "model_version": None,
        "entity": {"type": entity_type, "id": card},
        "severity": "high",
        "score": 0.75,
        "title": "Large amount",
        "reason": f"{number}00.00 EUR",
        "evidence": {"event_ids": [f"event-{number}"], "values": {"amount": f"{number}00"}},
        "event_time": NOON,
        "trigger": {"partition": 1, "offset": number},
        "detected_at": NOON + timedelta(seconds=1),
        "labels": {"owner": "fraud"},
        "table_versions": {},
    } | more
