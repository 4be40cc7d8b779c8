"""A stream of another domain, with fields of any names and types, is mapped and written without a line of code."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge.streams.definition import StreamDefinition
from lozenge.toml_places import spelled
from lozenge_upstream.normalise.declarations import currency_of
from lozenge_upstream.normalise.field_checks import problems
from lozenge_upstream.normalise.mapping_files import mapping_of
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import StreamOutput, outputs
from tests.streams import AUTH
from tests.upstream.samples import KEY, Raw, frame

SENSORS = StreamDefinition(
    name="sensors",
    title="Sensors",
    owner="plant",
    keys={"machine": "machine", "badge": "badge"},
    tokens={"badge": "badge"},
    avro={
        "type": "record",
        "name": "Reading",
        "namespace": "plant",
        "fields": [
            {"name": "machine", "type": "string", "pattern": "m[0-9]+"},
            {"name": "badge", "type": ["null", "string"], "default": None},
            {"name": "value", "type": "double"},
            {"name": "timestamp", "type": "long"},
            {"name": "load", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
            {"name": "alarm", "type": "boolean"},
            {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["idle", "busy"]}},
            {"name": "tags", "type": ["null", {"type": "map", "values": "string"}], "default": None},
            {"name": "blob", "type": ["null", "bytes"], "default": None},
        ],
    },
)
DECLARED: dict[str, Any] = {
    "source": "plc",
    "topic": "PLC",
    "keyed_by": "",
    "fields": {
        "event_time": {"transform": "timestamp_epoch", "path": "at", "unit": "ms"},
        "machine": {"transform": "text", "path": "id"},
        "badge": {"transform": "token", "path": "worker", "pattern": "[a-z]+"},
        "value": {"transform": "number", "path": "celsius"},
        "timestamp": {"transform": "number", "path": "ticks"},
        "load": {"transform": "number", "path": "load"},
        "alarm": {"transform": "boolean", "path": "alarm", "true": ["true", "yes"], "false": ["false"]},
        "mode": {"transform": "lookup", "path": "state", "table": {"0": "idle", "1": "busy"}},
    },
}
RECORD = {
    "at": 1772366400123,
    "id": "m7",
    "worker": "ann",
    "celsius": 1.5e2,
    "ticks": 9223372036854775807,
    "load": "12.50",
    "alarm": "yes",
    "state": "1",
}
AMOUNT = {"transform": "decimal", "path": "sum"}
AMOUNTS = {"amount": "currency", "settlement_amount": "settlement_currency"}
ALARM = {"transform": "case", "of": [{"value": "true", "when": [{"path": "state", "values": ["9"]}]}]}


def changed(**fields: Any) -> list[str]:
    """The problems of the mapping with other fields; None removes one."""
    made = {name: spec for name, spec in (DECLARED["fields"] | fields).items() if spec is not None}
    found = problems(mapping_of(DECLARED | {"fields": made}, SENSORS).fields, SENSORS)
    return [f"{spelled(problem.place)}: {problem.sentence}" for problem in found]


def test_a_record_becomes_an_event_of_its_stream(upstream_spark: SparkSession) -> None:
    mapping, target = mapping_of(DECLARED, SENSORS), StreamOutput(SENSORS, Topics(), ("badge",))
    wrong = {"id": "x", "celsius": "1e999", "ticks": "9223372036854775808", "load": "12.505", "alarm": 1, "state": 7}
    raws = [Raw(json.dumps(RECORD).encode()), Raw(json.dumps(RECORD | wrong).encode(), offset=1)]
    counts = dict.fromkeys((*target.keys, target.dead_letters), 4)
    rows = outputs(
        normalise(frame(upstream_spark, raws, mapping), mapping, KEY), mapping.source, target, counts
    ).collect()
    by_topic = {row.topic: row for row in rows}
    assert by_topic.keys() == {*target.keys, target.dead_letters}
    event = Codec(SENSORS.event_schema).decode(bytes(by_topic[target.events].value))
    assert event | {"event_id": "", "raw": {}} == {
        "event_id": "",
        "event_time": datetime(2026, 3, 1, 12, 0, 0, 123000, UTC),
        "machine": "m7",
        "badge": event["badge"],
        "value": 150.0,
        "timestamp": 9223372036854775807,
        "load": Decimal("12.50"),
        "alarm": True,
        "mode": "busy",
        "tags": None,
        "blob": None,
        "raw": {},
    }
    assert event["badge"].startswith("badge_")
    assert by_topic[target.dead_letters].reason == (
        "format:machine, digits:value, digits:timestamp, decimals:load, unknown:alarm, unknown:mode"
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"value": None}, "fields.value: it is missing: declare how it is made, by number"),
        ({"colour": {"transform": "text", "path": "c"}}, "fields.colour: there is no such field in the stream sensors"),
        ({"value": {"transform": "text", "path": "c"}}, "fields.value: text does not make it; number does"),
        ({"mode": {"transform": "constant", "value": "off"}}, "fields.mode: off is none of its values"),
        ({"machine": {"transform": "constant", "value": "x"}}, "fields.machine: x has not the form m[0-9]+"),
        ({"load": {"transform": "decimal", "path": "l"}}, "fields.load: an amount is a decimal of precision 18"),
        ({"badge": {"transform": "text", "path": "b"}}, "fields.badge: text does not make it; token does"),
        ({"tags": {"transform": "text", "path": "t"}}, "fields.tags: text does not make it; map does"),
        ({"blob": {"transform": "text", "path": "t"}}, "fields.blob: text does not make it; no transform does"),
        ({"event_time": None}, "fields.event_time: it is missing: declare how it is made, by timestamp_iso"),
        ({"alarm": ALARM | {"optional": True}}, "fields.alarm: it is optional here, and every event has the field"),
        ({"alarm": ALARM | {"default": "no"}}, "fields.alarm: no is none of its values"),
    ],
)
def test_what_does_not_fit_the_stream_is_named_with_its_field(fields: dict[str, Any], problem: str) -> None:
    assert any(each.startswith(problem) for each in changed(**fields)), changed(**fields)


def test_what_fits_has_no_problem() -> None:
    assert changed() == []
    assert changed(alarm=ALARM | {"default": "false"}) == []


def test_an_amount_has_the_currency_that_is_named_like_it() -> None:
    specs = {field: mapping_of(DECLARED | {"fields": {field: AMOUNT}}, AUTH).fields[field] for field in AMOUNTS}
    found = {name: currency_of(name, spec, (tuple(AUTH.fields),)) for name, spec in specs.items()}  # type: ignore[arg-type]
    assert found == {name: (0, currency) for name, currency in AMOUNTS.items()}
