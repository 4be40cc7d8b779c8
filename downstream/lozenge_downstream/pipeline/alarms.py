"""Alarms of the notifier: alerts of the detector "lozenge" about a part of the platform, processed as all others."""

from datetime import UTC, datetime

from lozenge.contracts.display_text import shortened
from lozenge.contracts.headers import derived_traceparent
from lozenge.contracts.ids import uuid5
from lozenge_downstream.model import HOUR, PublishedAlert

DETECTOR = "lozenge"
MAX_TEXT = 4_000


def hourly_id(now: float, *about: str) -> str:
    """The id of an alarm `about` something that is raised at most once in each hour."""
    return uuid5(*about, str(int(now // HOUR)))


def alarm(id: str, entity_type: str, entity_id: str, kind: str, title: str, text: str, now: float) -> PublishedAlert:
    """The alarm `kind` about an entity, such as "detector" and its name. An alarm of the same `id` is raised once."""
    return PublishedAlert(
        id=id,
        detector=DETECTOR,
        release="",
        entity_type=entity_type,
        entity_id=entity_id,
        severity="high",
        score=1.0,
        title=title,
        text=shortened(text, MAX_TEXT),
        event_time=datetime.fromtimestamp(now, UTC),
        detected_at=now,
        received_at=now,
        traceparent=derived_traceparent(id, 0, 0),
        labels={
            "detector": DETECTOR,
            "alarm": kind,
            "severity": "high",
            "entity_type": entity_type,
            "entity": f"{entity_type}:{entity_id}",
        },
    )
