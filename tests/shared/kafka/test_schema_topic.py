"""Only a schema that can be read as the packaged one is learned from the schema topic."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lozenge.kafka import schema_topic
from lozenge.kafka.schema_topic import learn, schema_in
from lozenge.kafka.settings import KafkaSettings
from tests.shared.kafka.test_row_decoding import JUNK, Message
from tests.streams import AUTH

EVENT = AUTH.event_schema
Definition = dict[str, Any]


def announced(number: int = 902, **changed: Any) -> tuple[bytes, bytes]:
    row = {"id": number, "name": AUTH.schema_name, "version": 2, "schema": EVENT.text} | changed
    return str(number).encode(), json.dumps(row).encode()


def field(name: str, kind: Any) -> Callable[[Definition], object]:
    """Gives a field of the events another type."""
    return lambda definition: next(f for f in definition["fields"] if f["name"] == name).update(type=kind)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (field("event_time", {"type": "long", "logicalType": "timestamp-millis"}), "event_time is timestamp-millis"),
        (field("event_time", "long"), "event_time is long, and not timestamp-micros"),
        (
            field("amount", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}),
            "amount is decimal",
        ),
        (field("mcc", "int"), "mcc is int, and not string"),
        (lambda definition: definition["fields"].pop(0), "it has no field event_id"),
        (lambda definition: definition.update(name="Order"), "its record is pay.Order"),
        (lambda definition: definition.update(fields=[]), "it has no field event_id"),
    ],
)
def test_a_schema_that_would_be_read_as_other_values_is_not_learned(
    change: Callable[[Definition], object], problem: str
) -> None:
    definition = EVENT.definition
    change(definition)
    with pytest.raises(ValueError, match=problem):
        schema_in(*announced(schema=json.dumps(definition)), [EVENT])


@pytest.mark.parametrize("text", ["{}", "[]", "nonsense", '"string"', '{"type": "record"}', "null", ""])
def test_what_is_no_schema_is_not_learned(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        schema_in(*announced(schema=text), [EVENT])


def test_a_schema_with_a_further_field_is_learned() -> None:
    definition = EVENT.definition
    definition["fields"].append({"name": "wallet", "type": ["null", "string"], "default": None})
    assert schema_in(*announced(schema=json.dumps(definition)), [EVENT]).id == 902


def test_junk_in_the_topic_hides_no_schema_and_no_later_row_takes_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = KafkaSettings(bootstrap="kafka:9092")
    topic = kafka.topics.control.schemas
    other = EVENT.definition | {"doc": "another"}
    rows = [
        *((str(number).encode(), junk) for number, junk in enumerate(JUNK)),
        announced(902),
        announced(902, schema=json.dumps(other)),
        *((b"902", junk) for junk in JUNK),
        (b"903", None),
        announced(904, name="Order", schema='{"type": "record", "name": "Order", "fields": []}'),
    ]
    messages = [Message(topic, key, value) for key, value in rows]
    monkeypatch.setattr(schema_topic, "partitions", lambda _: {topic: 1})
    monkeypatch.setattr(schema_topic, "retained", lambda *_: messages)
    [found] = learn(kafka, AUTH.event_schema)
    assert (found.id, found.text) == (902, EVENT.text)
