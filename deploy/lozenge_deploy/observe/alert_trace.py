"""The origin of an alert: what triggered it, back to the raw records, as far as the topics still have them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import Message

from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import shown
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topic_patterns import detector_of, event_topics
from lozenge.contracts.topics import Topics
from lozenge.errors import DecodeError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import record_at
from lozenge_deploy.observe.record_view import decoded, time_of

GONE = "no longer in its topic"
MOST_FIELDS = 8
"""Fields of an event that its line shows."""
MOST_ALERTS = 10
"""Alerts behind one alert that are followed, the newest of its evidence."""
Position = tuple[str, int, int]
"""Topic, partition and offset of a record."""
Step = dict[str, Any]


@dataclass(frozen=True)
class Causes:
    """Where the causes of alerts are, each None where that is not known.

    `input_of` is the topic that a detector reads in one of its releases, `alert_at` where the alert of an id is.
    """

    input_of: Callable[[str, str], str | None]
    alert_at: Callable[[str], Position | None]


def trace_of(kafka: KafkaSettings, alert: Position, causes: Causes) -> list[Step]:
    """Raw record, event and alert, in this order, each with `when`, `what`, `detail` and `where`.

    Before an alert of alerts are these, each with its own origin. A deleted step says so. Raises BrokerUnavailable,
    SchemaError.
    """
    return _trace(kafka, alert, causes, settle_ids(kafka, ()))


def _trace(kafka: KafkaSettings, position: Position, causes: Causes, schemas: Sequence[Schema]) -> list[Step]:
    alert = _decoded(record_at(kafka, *position), "alert")
    if isinstance(alert, str):
        return [_step(None, "alert", alert, *position)]
    detail = shown(f"{alert['detector']} {alert['release']}: {alert['reason']}")
    own = _step(_time(alert["detected_at"]), "alert", detail, *position)
    source = causes.input_of(alert["detector"], alert["release"])
    if source is not None and _has_alerts(kafka.topics, source):
        behind = _alerts_behind(alert, source, causes)
        return [*(step for each in behind for step in _trace(kafka, each, causes, schemas)), own]
    return [*_event_steps(kafka, alert, source, schemas), own] if alert["trigger"] is not None else [own]


def _has_alerts(topics: Topics, topic: str) -> bool:
    try:
        detector_of(topics, topic)
    except ValueError:
        return False
    return True


def _alerts_behind(alert: dict[str, Any], source: str, causes: Causes) -> list[Position]:
    """The alerts in the topic `source` that an alert has as evidence, and the one that triggered it; each once."""
    evidence = map(causes.alert_at, alert["evidence"]["event_ids"][-MOST_ALERTS:])
    found = [each for each in evidence if each is not None and each[0] == source]
    trigger = alert["trigger"]
    found += [(source, trigger["partition"], trigger["offset"])] if trigger is not None else []
    return list(dict.fromkeys(found))


def _event_steps(
    kafka: KafkaSettings, alert: dict[str, Any], source: str | None, schemas: Sequence[Schema]
) -> list[Step]:
    """The raw record and the event that triggered an alert."""
    trigger = alert["trigger"]
    found = _event_of(kafka, alert, source, schemas)
    if isinstance(found, str):
        return [_step(None, "event", found, source or f"{alert['entity']['type']}:", *trigger.values())]
    events, event = found
    where = events, trigger["partition"], trigger["offset"]
    detail = shown(f"{event['event_id']}: {', '.join(_shown(event))}")
    raw = event["raw"]
    origin = raw["topic"], raw["partition"], raw["offset"]
    record = record_at(kafka, *origin)
    written = (time_of(record) or "-")[:19].replace("T", " ") if record else None
    return [
        _step(written, "raw record", f"{len(record.value() or b'')} bytes" if record else GONE, *origin),
        _step(_time(datetime.fromisoformat(event["event_time"])), "event", detail, *where),
    ]


def _event_of(
    kafka: KafkaSettings, alert: dict[str, Any], source: str | None, schemas: Sequence[Schema]
) -> tuple[str, dict[str, Any]] | str:
    """The topic and the event that triggered the alert, or why there is none.

    An alert names its key and no stream. Where its input `source` is not known, its release is not kept: then of
    several events at its position the one that it has as evidence counts.
    """
    trigger, missing, existing = alert["trigger"], GONE, partitions(kafka)
    topics = event_topics(kafka.topics, existing, alert["entity"]["type"])
    found = []
    for topic in topics if source is None else {source} & existing.keys():
        message = record_at(kafka, topic, trigger["partition"], trigger["offset"])
        if message is None:
            continue
        value = decoded(message.value(), schemas)
        if isinstance(value, dict) and {"event_id", "event_time", "raw"} <= value.keys():
            found.append((topic, value))
        else:
            missing = f"unreadable: {len(message.value() or b'')} bytes in {topic}"
    evidence = alert["evidence"]["event_ids"]
    found.sort(key=lambda each: each[1]["event_id"] not in evidence)
    return found[0] if found else missing


def _shown(event: dict[str, Any]) -> list[str]:
    """The fields of the stream that are one value, for a person."""
    own = {name: value for name, value in event.items() if name not in ("event_id", "event_time", "raw")}
    return [f"{name} {value}" for name, value in own.items() if isinstance(value, str | int | float)][:MOST_FIELDS]


def _decoded(message: Message | None, contract: str) -> dict[str, Any] | str:
    """The record as data, or why there is none."""
    if message is None:
        return GONE
    try:
        return Codec.of(contract).decode(message.value())
    except DecodeError as error:
        return f"unreadable: {error.message}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _step(when: str | None, what: str, detail: str, topic: str, partition: int, offset: int) -> Step:
    return {"when": when or "-", "what": what, "detail": detail, "where": f"{topic} {partition}:{offset}"}
