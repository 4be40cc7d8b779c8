"""Records, lists and maps of an event: made of raw ones, or a dead letter that names what is wrong within."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge.streams.definition import StreamDefinition
from lozenge.toml_places import spelled
from lozenge_upstream.normalise.mapping import Mapping, problems
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, mapping_of
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import StreamOutput, outputs
from lozenge_upstream.stream_samples.tried_record import TriedRecord, try_records
from tests.upstream.samples import KEY, NOW, Raw, frame

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
TIME = {"type": "long", "logicalType": "timestamp-micros"}
KIND = {"type": "enum", "name": "Kind", "symbols": ["phone", "desk"]}
ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "sku", "type": "string", "pattern": "[a-z]+-[0-9]+"},
        {"name": "price", "type": DECIMAL},
        {"name": "sold_at", "type": ["null", TIME], "default": None},
        {"name": "sizes", "type": {"type": "array", "items": "long"}},
        {"name": "marks", "type": ["null", {"type": "array", "items": "string"}], "default": None},
    ],
}
DEVICE = {
    "type": "record",
    "name": "Device",
    "fields": [
        {"name": "os", "type": "string"},
        {"name": "kind", "type": KIND},
        {"name": "rooted", "type": ["null", "boolean"], "default": None},
        {"name": "screen", "type": {"type": "record", "name": "Screen", "fields": [{"name": "width", "type": "int"}]}},
    ],
}


def optional(kind: Any) -> dict[str, Any]:
    return {"type": ["null", kind], "default": None}


ORDERS = StreamDefinition(
    name="orders",
    title="Orders",
    owner="shop",
    keys={"user": "user"},
    avro={
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "user", "type": "string"},
            {"name": "device", **optional(DEVICE)},
            {
                "name": "place",
                "type": {"type": "record", "name": "Place", "fields": [{"name": "town", "type": "string"}]},
            },
            {"name": "items", "type": {"type": "array", "items": ITEM}},
            {"name": "tags", **optional({"type": "array", "items": "string"})},
            {"name": "scores", **optional({"type": "map", "values": "double"})},
            {
                "name": "rooms",
                **optional({"type": "map", "values": {"type": "array", "items": KIND | {"name": "Room"}}}),
            },
        ],
    },
)
DECLARED: dict[str, Any] = {
    "source": "web",
    "topic": "WEB",
    "keyed_by": "",
    "fields": {
        "event_time": {"transform": "timestamp_epoch", "path": "at", "unit": "ms"},
        "user": {"transform": "text", "path": "user"},
        "place": {
            "transform": "record",
            "fields": {"town": {"transform": "text", "path": "town", "card_numbers": "mask"}},
        },
        "device": {
            "transform": "record",
            "fields": {
                "os": {"transform": "text", "path": "device.os"},
                "kind": {"transform": "lookup", "path": "device.type", "table": {"P": "phone", "D": "desk"}},
                "rooted": {"transform": "boolean", "path": "device.rooted"},
                "screen": {
                    "transform": "record",
                    "fields": {"width": {"transform": "number", "path": "device.screen.w"}},
                },
            },
        },
        "items": {
            "transform": "list",
            "path": "basket.items",
            "of": {
                "transform": "record",
                "fields": {
                    "sku": {"transform": "join", "separator": "-", "parts": [{"path": "group"}, {"path": "no"}]},
                    "price": {"transform": "number", "path": "price"},
                    "sold_at": {"transform": "timestamp_iso", "path": "sold", "zone": "Europe/Berlin"},
                    "sizes": {"transform": "list", "path": "sizes", "of": {"transform": "number", "path": "."}},
                    "marks": {"transform": "list", "path": "marks", "of": {"transform": "text", "path": "."}},
                },
            },
        },
        "tags": {"transform": "list", "path": "tags", "of": {"transform": "text", "path": "."}},
        "scores": {"transform": "map", "path": "scores", "of": {"transform": "number", "path": "."}},
        "rooms": {
            "transform": "map",
            "path": "rooms",
            "of": {
                "transform": "list",
                "path": ".",
                "of": {"transform": "lookup", "path": "type", "table": {"P": "phone", "D": "desk"}},
            },
        },
    },
}
AT = int(NOW.timestamp() * 1000)
DEVICE_RECORD = {"os": "x", "type": "P", "screen": {"w": 3}}
ITEM_RECORD = {"group": "a", "no": 1, "price": "1.50", "sizes": [1]}
RECORD: dict[str, Any] = {"at": AT, "user": "u", "town": "Bern", "basket": {"items": [ITEM_RECORD]}}
FULL: dict[str, Any] = {
    "at": AT,
    "user": "u",
    "town": "to 4000000000000002",
    "device": {"os": "x", "type": "D", "rooted": True, "screen": {"w": 1920}},
    "basket": {
        "items": [
            {"group": "a", "no": 17, "price": 1.5e1, "sold": "2026-03-01 12:00", "sizes": [1, "2"], "marks": []},
            {"group": "b", "no": 18, "price": "2.50", "sizes": []},
        ]
    },
    "tags": ["one", " two ", 3],
    "scores": {"a": 0.5, "B c": "1e3", "n": -1},
    "rooms": {"r1": [{"type": "P"}, {"type": "D"}], "r2": []},
}


def mapping(**fields: Any) -> Mapping:
    made = {name: spec for name, spec in (DECLARED["fields"] | fields).items() if spec is not None}
    return mapping_of(DECLARED | {"fields": made}, ORDERS)


WEB = mapping()


def tried(spark: SparkSession, *records: Any) -> list[TriedRecord]:
    texts = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return try_records(spark, WEB, [(text, NOW) for text in texts], KEY)


def test_parts_become_an_event_that_a_consumer_reads(upstream_spark: SparkSession) -> None:
    assert list(problems(WEB)) == []
    assert runnable(upstream_spark, Mappings([WEB], [])).refused == []
    target = StreamOutput(ORDERS, Topics(), ())
    counts = dict.fromkeys((*target.keys, target.dead_letters), 4)
    raws = [Raw(json.dumps(FULL).encode()), Raw(json.dumps(RECORD).encode(), offset=1)]
    rows = outputs(normalise(frame(upstream_spark, raws, WEB), WEB, KEY), "web", target, counts).collect()
    full, least = (Codec(ORDERS.event_schema).decode(bytes(row.value)) for row in sorted(rows, key=lambda r: r.raw))
    assert [row.reason for row in rows] == [None, None]
    assert {name: full[name] for name in WEB.fields if name != "event_time"} == {
        "user": "u",
        "place": {"town": "to 400000******0002"},
        "device": {"os": "x", "kind": "desk", "rooted": True, "screen": {"width": 1920}},
        "items": [
            {
                "sku": "a-17",
                "price": Decimal("15.00"),
                "sold_at": datetime(2026, 3, 1, 11, tzinfo=UTC),
                "sizes": [1, 2],
                "marks": [],
            },
            {"sku": "b-18", "price": Decimal("2.50"), "sold_at": None, "sizes": [], "marks": None},
        ],
        "tags": ["one", "two", "3"],
        "scores": {"a": 0.5, "B c": 1000.0, "n": -1.0},
        "rooms": {"r1": ["phone", "desk"], "r2": []},
    }
    assert (least["device"], least["tags"], least["scores"], least["rooms"]) == (None, None, None, None)
    [event] = tried(upstream_spark, FULL)
    assert event.event is not None
    assert event.event["items"] == full["items"], "it is shown as it is written"


WRONG: dict[str, tuple[Any, str]] = {
    "a part of a record is missing": (RECORD | {"device": DEVICE_RECORD | {"os": " "}}, "missing:device.os"),
    "all of a required record": (RECORD | {"town": None}, "missing:place.town"),
    "several parts": (
        RECORD | {"device": {"rooted": "perhaps", "type": "X", "screen": {"w": "wide"}}},
        "missing:device.os, unknown:device.kind, unknown:device.rooted, format:device.screen.width",
    ),
    "no list": ({name: value for name, value in RECORD.items() if name != "basket"}, "missing:items"),
    "null instead of a list": (RECORD | {"basket": {"items": None}}, "missing:items"),
    "another container": (RECORD | {"basket": {"items": {"group": "a"}}}, "type:basket"),
    "a value instead of a container": (RECORD | {"tags": "one"}, "type:tags"),
    "a list instead of a map": (RECORD | {"scores": [1]}, "type:scores"),
    "an element that is no object": (RECORD | {"basket": {"items": ["a"]}}, "type:basket"),
    "null as an element": (RECORD | {"tags": ["a", None]}, "missing:tags"),
    "an object as an element": (RECORD | {"tags": ["a", {"b": 1}]}, "type:tags"),
    "equal problems of many elements": (
        RECORD
        | {"basket": {"items": [ITEM_RECORD | {"price": "x"}] * 50 + [ITEM_RECORD | {"no": None, "sizes": None}]}},
        "format:items.price, missing:items.sku, missing:items.sizes",
    ),
    "a pattern of the schema": (RECORD | {"basket": {"items": [ITEM_RECORD | {"group": "A"}]}}, "format:items.sku"),
    "more decimals than the field has": (
        RECORD | {"basket": {"items": [ITEM_RECORD | {"price": "1.505"}]}},
        "decimals:items.price",
    ),
    "more digits than the field has": (
        RECORD | {"basket": {"items": [ITEM_RECORD | {"price": "12345678901.505"}]}},
        "digits:items.price",
    ),
    "a number in a list within a list": (
        RECORD | {"basket": {"items": [ITEM_RECORD | {"sizes": [1, 2**63]}]}},
        "digits:items.sizes",
    ),
    "an hour that the zone does not have": (
        RECORD | {"basket": {"items": [ITEM_RECORD | {"sold": "2025-03-30 02:30"}]}},
        "zone:items.sold_at",
    ),
    "a card number in an element": (RECORD | {"tags": ["to 4000000000000002"]}, "pan:tags"),
    "a card number as a name": (RECORD | {"scores": {"4000000000000002": 1}}, "pan:scores"),
    "a blank name of a line": (RECORD | {"scores": {"a\nb": 1}}, "format:scores"),
    "a name that is there twice": (
        json.dumps(RECORD)[:-1].encode() + b', "scores": {"a": 1, "a": 2}}',
        "format:scores",
    ),
    "a map with a wrong value": (RECORD | {"scores": {"a": 1, "b": "x"}}, "format:scores"),
    "a word that is no symbol": (RECORD | {"rooms": {"r": [{"type": "Q"}]}}, "unknown:rooms"),
    "with a fault elsewhere": (RECORD | {"user": None, "town": None}, "missing:user, missing:place.town"),
}


def test_what_is_wrong_within_is_named_by_its_names(upstream_spark: SparkSession) -> None:
    found = tried(upstream_spark, *(record for record, _ in WRONG.values()))
    assert {name: ", ".join(each.problems) for name, each in zip(WRONG, found, strict=True)} == {
        name: reason for name, (_, reason) in WRONG.items()
    }


TEXT = {"transform": "text", "path": "x"}
SCREEN = DECLARED["fields"]["device"]["fields"]["screen"]


def test_what_the_elements_of_a_list_become_is_computed_once(
    upstream_spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern, uses = "[a-z]+-[0-9]+", 2  # in the value, and in the reason if that is a card number
    session = upstream_spark.newSession()
    session.conf.set("spark.sql.debug.maxToStringFields", "10000")
    normalise(frame(session, [Raw(b"{}")], mapping()), mapping(), KEY).explain()
    assert capsys.readouterr().out.count(pattern) == uses


def device(**fields: Any) -> dict[str, Any]:
    declared = DECLARED["fields"]["device"]["fields"] | fields
    return {"transform": "record", "fields": {name: spec for name, spec in declared.items() if spec is not None}}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"device": TEXT}, "fields.device: text does not make it; record does"),
        ({"tags": TEXT}, "fields.tags: text does not make it; list does"),
        ({"scores": TEXT}, "fields.scores: text does not make it; map does"),
        ({"device": device(os=None)}, "fields.device.fields.os: it is missing: declare how it is made, by text"),
        ({"device": device(ram=TEXT)}, "fields.device.fields.ram: there is no such field in the record Device"),
        ({"device": device(rooted=TEXT)}, "fields.device.fields.rooted: text does not make it; boolean"),
        (
            {"device": device(kind={"transform": "constant", "value": "car"})},
            "fields.device.fields.kind: car is none of its values",
        ),
        (
            {"tags": {"transform": "list", "path": "tags", "of": {"transform": "number", "path": "."}}},
            "fields.tags.of: number does not make it; text, join",
        ),
        (
            {"items": {"transform": "list", "path": "i", "of": {"transform": "record", "fields": {"sku": TEXT}}}},
            "fields.items.of.fields.price: it is missing: declare how it is made",
        ),
        (
            {"device": device(os={"transform": "token", "path": "x"})},
            "fields.device.fields.os: token does not make it; text",
        ),
        (
            {"device": device(os={"transform": "join", "parts": [{"path": "x"}, {"path": "y"}]})},
            "fields.device.fields.os: a joined text needs a separator",
        ),
    ],
)
def test_what_does_not_fit_the_schema_within_is_named_by_its_place(fields: dict[str, Any], problem: str) -> None:
    found = [f"{spelled(each.place)}: {each.sentence}" for each in problems(mapping(**fields))]
    assert any(each.startswith(problem) for each in found), found


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"user": {"transform": "text", "path": "."}}, "is the element of a list or a map"),
        ({"user": {"transform": "text", "path": "tags"}}, "tags cannot be a value and hold further fields"),
        ({"user": {"transform": "text", "path": "scores.a"}}, "scores cannot be a map and an object at once"),
        ({"user": {"transform": "text", "path": "basket.items.x"}}, "basket.items cannot be a list and an object"),
    ],
)
def test_what_no_record_can_be_is_refused(fields: dict[str, Any], problem: str) -> None:
    found = list(problems(mapping(**fields)))
    assert any(each.place == ("fields", *fields) and problem in each.sentence for each in found), found


def test_an_element_of_which_nothing_is_read_is_refused() -> None:
    with pytest.raises(ValidationError, match="reads nothing of an element"):
        mapping(tags={"transform": "list", "path": "tags", "of": {"transform": "constant", "value": "x"}})


def test_a_zone_and_a_pattern_within_are_checked_by_java(upstream_spark: SparkSession) -> None:
    text = {"transform": "text", "path": ".", "pattern": "(?P<x>a)"}
    sold = {"transform": "timestamp_iso", "path": "sold", "zone": "Europe/Nowhere"}
    items = json.loads(json.dumps(DECLARED["fields"]["items"]))
    items["of"]["fields"]["sold_at"] = sold
    wrong = mapping(tags={"transform": "list", "path": "tags", "of": text}, items=items)
    [refused] = runnable(upstream_spark, Mappings([wrong], [])).refused
    said = " ".join(refused.problems)
    assert "fields.tags.of.pattern: '(?P<x>a)' is no regular expression" in said
    assert "fields.items.of.fields.sold_at.zone: 'Europe/Nowhere' is no zone" in said
