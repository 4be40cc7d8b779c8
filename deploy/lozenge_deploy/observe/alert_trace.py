"""The origin of an alert: the event that triggered it and its raw record, as far as the topics still have them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import Message

from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import shown
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topic_patterns import event_topics
from lozenge.errors import DecodeError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import record_at
from lozenge_deploy.observe.record_view import decoded, time_of

GONE = "no longer in its topic"
MOST_FIELDS = 8
"""Fields of an event that its line shows."""


def trace_of(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> list[dict[str, Any]]:
    """Raw record, event and alert, in this order, each with `when`, `what`, `detail` and `where`.

    Raises BrokerUnavailable, SchemaError. `topic`, `partition` and `offset` are of the alert. A deleted step says so.
    """
    schemas = settle_ids(kafka, ())
    alert = _decoded(record_at(kafka, topic, partition, offset), "alert")
    if isinstance(alert, str):
        return [_step(None, "alert", alert, topic, partition, offset)]
    detail = shown(f"{alert['detector']} {alert['release']}: {alert['reason']}")
    steps = [_step(_time(alert["detected_at"]), "alert", detail, topic, partition, offset)]
    trigger = alert["trigger"]
    if trigger is None:
        return steps
    found = _event_of(kafka, alert, schemas)
    if isinstance(found, str):
        return [_step(None, "event", found, f"{alert['entity']['type']}:", *trigger.values()), *steps]
    events, event = found
    where = events, trigger["partition"], trigger["offset"]
    detail = shown(f"{event['event_id']}: {', '.join(_shown(event))}")
    raw = event["raw"]
    source = raw["topic"], raw["partition"], raw["offset"]
    record = record_at(kafka, *source)
    written = (time_of(record) or "-")[:19].replace("T", " ") if record else None
    raw_step = _step(written, "raw record", f"{len(record.value() or b'')} bytes" if record else GONE, *source)
    return [raw_step, _step(_time(datetime.fromisoformat(event["event_time"])), "event", detail, *where), *steps]


def _event_of(
    kafka: KafkaSettings, alert: dict[str, Any], schemas: Sequence[Schema]
) -> tuple[str, dict[str, Any]] | str:
    """The topic and the event that triggered the alert, or why there is none.

    An alert names its key and no stream. Of several events at its position the one that it has as evidence counts.
    """
    trigger, missing = alert["trigger"], GONE
    found = []
    for topic in event_topics(kafka.topics, partitions(kafka), alert["entity"]["type"]):
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


def _step(when: str | None, what: str, detail: str, topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {"when": when or "-", "what": what, "detail": detail, "where": f"{topic} {partition}:{offset}"}
