"""The alerts of a detector as a stream: a definition that the platform makes, without a folder.

Its topic is the alert topic of that detector, where each alert is in the partition of its entity. An event has the
fields of an alert without nesting, and the id of the alert. `raw` has the coordinates of the alert, and as its time
when the alert was made.
"""

from collections.abc import Mapping
from typing import Any

from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import ALERT_RETENTION, Topics
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import ENVELOPE, RECORD

ENTITY = "entity"
"""The field that keys the topic."""
ENTITY_TYPE, MADE = "entity.type", "detected_at"
"""What an alert is about, and when it was made, by their paths in an alert."""
PATHS: Mapping[str, str] = {
    "event_id": "alert_id",
    "event_time": "event_time",
    ENTITY: "entity.id",
    "detector": "detector",
    "severity": "severity",
    "score": "score",
    "title": "title",
    "reason": "reason",
    "evidence": "evidence.event_ids",
    "values": "evidence.values",
    "labels": "labels",
    "release": "release",
    "settings_digest": "settings_digest",
    "model_version": "model_version",
    "table_versions": "table_versions",
    MADE: MADE,
}
"""Where in an alert each field of its event is."""
_HINTS: Mapping[str, Mapping[str, Any]] = {
    "severity": {"values": ["info", "low", "medium", "high", "critical"], "example": "medium"},
    "score": {"example": 0.5},
    "release": {"example": "r1"},
}


def alert_stream(detector: str, key: str) -> StreamDefinition:
    """The alerts of `detector`, whose entity is `key`; an alert about another kind of entity has none."""
    return StreamDefinition(
        name=f"alerts.{detector}",
        title=f"Alerts of {detector}",
        owner=detector,
        keys={key: ENTITY},
        retention=ALERT_RETENTION,
        app=detector,
        raw_topics=(Topics().detector(detector).alerts,),
        sources=(detector,),
        avro=_event(detector),
        alerts_of=detector,
    )


def event_of(alert: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the event of a decoded alert, without `raw`; what the alert lacks is None."""
    return {name: _value(alert, path) for name, path in PATHS.items()}


def _value(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def _event(detector: str) -> dict[str, Any]:
    alert, hints = newest("alert").definition, {**_HINTS, "detector": {"values": [detector]}}
    own = [(name, path) for name, path in PATHS.items() if name not in ENVELOPE]
    return {
        "type": RECORD,
        "name": "AlertEvent",
        "namespace": "lozenge",
        "doc": f"An alert of {detector}.",
        "fields": [{"name": name, **_declared(alert, path), **hints.get(name, {})} for name, path in own],
    }


def _declared(record: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Type, default and document of the field at a path."""
    name, _, inner = path.partition(".")
    [field] = [each for each in record["fields"] if each["name"] == name]
    return _declared(field["type"], inner) if inner else {key: value for key, value in field.items() if key != "name"}
