"""The origin of an alert: the event that triggered it and its raw record, as far as the topics still have them."""

from datetime import datetime
from typing import Any

from confluent_kafka import Message

from lozenge.contracts.avro import Codec
from lozenge.contracts.card_numbers import masked
from lozenge.errors import DecodeError
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import record_at
from lozenge_deploy.observe.record_view import time_of

GONE = "no longer in its topic"


def trace_of(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> list[dict[str, Any]]:
    """Raw record, event and alert, in this order, each with `when`, `what`, `detail` and `where`.

    Raises BrokerUnavailable, SchemaError. `topic`, `partition` and `offset` are of the alert. A deleted step says so.
    """
    settle_ids(kafka, ())
    alert = _decoded(record_at(kafka, topic, partition, offset), "alert")
    if isinstance(alert, str):
        return [_step(None, "alert", alert, topic, partition, offset)]
    detail = masked(f"{alert['detector']} {alert['release']}: {alert['reason']}")
    steps = [_step(_time(alert["detected_at"]), "alert", detail, topic, partition, offset)]
    trigger = alert["trigger"]
    if trigger is None:
        return steps
    events = kafka.topics.events_by(alert["entity"]["type"])
    where = events, trigger["partition"], trigger["offset"]
    event = _decoded(record_at(kafka, *where), "event")
    if isinstance(event, str):
        return [_step(None, "event", event, *where), *steps]
    detail = f"{event['event_id']}: {event['amount']} {event['currency']}, {event['auth_result']}"
    raw = event["raw"]
    source = raw["topic"], raw["partition"], raw["offset"]
    record = record_at(kafka, *source)
    written = (time_of(record) or "-")[:19].replace("T", " ") if record else None
    raw_step = _step(written, "raw record", f"{len(record.value() or b'')} bytes" if record else GONE, *source)
    return [raw_step, _step(_time(event["event_time"]), "event", detail, *where), *steps]


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
