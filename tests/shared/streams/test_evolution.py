"""Within v1 an event schema changes so that readers of each release read the records of all others."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lozenge.streams.evolution import incompatible

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "machine", "type": "string"},
        {"name": "hall", "type": ["null", "string"], "default": None},
        {"name": "celsius", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["idle", "busy"]}},
        {"name": "axes", "type": {"type": "array", "items": {"type": "record", "name": "Axis", "fields": [
            {"name": "position", "type": "int"}
        ]}}},
        {"name": "tags", "type": ["null", {"type": "map", "values": "string"}], "default": None},
    ],
}  # fmt: skip
Change = Callable[[list[Any]], object]


def changed(change: Change) -> dict[str, Any]:
    schema = copy.deepcopy(SCHEMA)
    change(schema["fields"])
    return schema


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: None,
        lambda fields: fields.append({"name": "line", "type": ["null", "string"], "default": None}),
        lambda fields: fields.append({"name": "speed", "type": "int", "default": 0}),
        lambda fields: fields.pop(1),
        lambda fields: fields.reverse(),
        lambda fields: fields[0].update(doc="Which machine.", type={"type": "string"}),
        lambda fields: fields[4]["type"]["items"]["fields"].append({"name": "unit", "type": "string", "default": "mm"}),
    ],
)
def test_what_every_reader_reads_may_follow(change: Change) -> None:
    assert incompatible(SCHEMA, changed(change)) == []
    assert incompatible(changed(change), SCHEMA) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda f: f.append({"name": "line", "type": "string"}), "line is new, and older records do not have it"),
        (lambda f: f.pop(0), "machine is gone"),
        (lambda f: f[0].update(type="bytes"), "machine is bytes, and was string"),
        (lambda f: f[0].update(type=["null", "string"], default=None), "machine is null or string, and was string"),
        (lambda f: f[2]["type"].update(scale=3), "celsius is decimal 9 3, and was decimal 9 2"),
        (lambda f: f[3]["type"]["symbols"].append("off"), "mode has the symbols idle, busy, off, and had idle, busy"),
        (lambda f: f[3]["type"].update(name="State"), "mode is named State, and was Mode"),
        (lambda f: f[4]["type"]["items"]["fields"][0].update(type="long"), "axes[].position is long, and was int"),
        (lambda f: f[5]["type"][1].update(values="int"), "tags[] is int, and was string"),
    ],
)
def test_what_some_reader_would_misread_is_named_with_its_path(change: Change, problem: str) -> None:
    [found] = incompatible(SCHEMA, changed(change))
    assert found.startswith(problem)


def test_another_record_is_no_version_of_this_one() -> None:
    assert incompatible(SCHEMA, SCHEMA | {"name": "Sample"}) == [
        "the schema is named plant.Sample, and was plant.Reading"
    ]
