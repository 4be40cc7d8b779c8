"""A stream is a folder of data: it is read, and every problem of its files is named at once, with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import read, write_copy
from tests.streams import AUTH

DECLARATION = """\
title = "Sensors"
owner = "plant"
keys = { machine = "machine", hall = "hall" }
copies = ["hall"]
retention = "2d"
"""
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "machine", "type": "string", "pattern": "m[0-9]+", "example": "m7"},
        {"name": "hall", "type": ["null", "string"], "default": None},
        {"name": "celsius", "type": "double"},
        {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["idle", "busy"]}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "axes", "type": {"type": "array", "items": {"type": "record", "name": "Axis", "fields": [
            {"name": "position", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}}
        ]}}},
    ],
}  # fmt: skip

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 3}
NESTED = {"type": "record", "name": "X", "fields": [{"name": "y", "type": "uuid"}]}


def written(tmp_path: Path, declaration: str = DECLARATION, schema: Any = SCHEMA) -> Path:
    folder = tmp_path / "sensors"
    (folder / "mappings").mkdir(parents=True)
    (folder / "stream.toml").write_text(declaration, "utf-8")
    (folder / "event.avsc").write_text(schema if isinstance(schema, str) else json.dumps(schema, indent=1), "utf-8")
    (folder / "mappings" / "plc.toml").write_text('source = "plc"\ntopic = "PLC"\n', "utf-8")
    return folder


def problems(folder: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        read(folder)
    return "\n".join(refused.value.problems)


def changed(field: dict[str, Any]) -> dict[str, Any]:
    """The schema with another field of that name, or with one more."""
    others = [each for each in SCHEMA["fields"] if each["name"] != field.get("name")]
    return SCHEMA | {"fields": [*others, field]}


def test_a_stream_of_any_names_and_types_is_read(tmp_path: Path) -> None:
    stream = read(written(tmp_path))
    assert (stream.name, stream.primary, stream.rekeys, stream.raw_topics) == (
        "sensors",
        "machine",
        ("hall",),
        ("PLC",),
    )
    assert [(field.name, field.kind, field.optional) for field in stream.fields] == [
        ("machine", "string", False),
        ("hall", "string", True),
        ("celsius", "double", False),
        ("mode", "enum", False),
        ("tags", "map", False),
        ("axes", "array", False),
    ]
    topics = Topics("acme.", 6)
    assert [(each.name, each.config["retention.ms"]) for each in stream.topics(topics, stream.copies)] == [
        ("acme.PLC", "172800000"),
        ("acme.pay.canonical.sensors.v1", "172800000"),
        ("acme.pay.canonical.sensors.by-hall.v1", "172800000"),
        ("acme.pay.dlq.upstream-sensors.v1", "2592000000"),
        ("acme.lozenge.coverage.upstream-sensors.v1", "-1"),
    ]
    assert stream.events(topics, "machine") == stream.events(topics) == "acme.pay.canonical.sensors.v1"
    assert stream.column("") == "machine"
    assert (stream.app, stream.sources) == ("upstream-sensors", ("plc",))


def test_a_stream_may_name_its_normaliser(tmp_path: Path) -> None:
    assert read(written(tmp_path, DECLARATION + 'app = "upstream"\n')).app == "upstream"


def test_a_copy_in_a_release_is_the_definition(tmp_path: Path) -> None:
    write_copy(AUTH, tmp_path)
    assert read(tmp_path / "auth") == AUTH
    assert read(tmp_path / "auth").digest == AUTH.digest


def test_a_token_may_be_within_records_lists_and_maps(tmp_path: Path) -> None:
    badge = {"type": "record", "name": "Badge", "fields": [{"name": "no", "type": "string"}]}
    lists = {"name": "seen", "type": {"type": "array", "items": {"type": "map", "values": badge}}}
    names = {"name": "names", "type": {"type": "array", "items": "string"}}
    folder = written(tmp_path, DECLARATION + 'tokens = { "seen.no" = "badge", names = "name" }\n')
    (folder / "event.avsc").write_text(json.dumps(SCHEMA | {"fields": [*SCHEMA["fields"], lists, names]}), "utf-8")
    assert read(folder).tokens == {"seen.no": "badge", "names": "name"}


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        (DECLARATION.replace("plant", ""), "stream.toml line 2: owner: it shows nothing"),
        (DECLARATION.replace("title", "titel"), "stream.toml line 1: titel: there is no such name here"),
        (DECLARATION.replace('["hall"]', '["machine"]'), "copies: machine: the keys besides the first are hall"),
        (DECLARATION.replace('"machine", hall', '"device", hall'), "line 3: keys.machine: there is no field device"),
        (DECLARATION.replace('hall = "hall"', 'hall = "celsius"'), "keys.hall: celsius is of type double"),
        (DECLARATION.replace('machine = "machine", ', "").replace('["hall"]', "[]"), "keys.hall: hall keys the topic"),
        (DECLARATION.replace('"2d"', '"soon"'), "stream.toml line 5: retention: 'soon' is not a duration"),
        (DECLARATION + 'tokens = { badge = "badge" }\n', "stream.toml line 6: tokens.badge: there is no field badge"),
        (DECLARATION + 'tokens = { "hall.door" = "d" }\n', "tokens.hall.door: there is no field hall.door"),
        (DECLARATION + 'tokens = { celsius = "c" }\n', "tokens.celsius: celsius is of type double; a key and"),
        (DECLARATION + "keys = 1\n", "stream.toml: not TOML"),
        (DECLARATION.replace("2d", "0s"), "stream.toml line 5: retention: it is longer than nothing"),
        (DECLARATION + 'app = "normaliser"\n', "stream.toml line 6: app: it must match pattern"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_declaration_is_named(tmp_path: Path, declaration: str, problem: str) -> None:
    assert problem in problems(written(tmp_path, declaration))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "event.avsc: not JSON"),
        ([], "event.avsc: it is no record"),
        (SCHEMA | {"namespace": "no name"}, "event.avsc: namespace is missing or no name of Avro's"),
        (changed({"name": "raw", "type": "string"}), "raw: the platform adds a field of this name"),
        (changed({"name": "class", "type": "string"}), "class: a name has the form"),
        (changed({"name": "Celsius", "type": "double"}), "Celsius: another field has this name"),
        (changed({"name": "at", "type": MILLIS}), "at: the logical type timestamp-millis of long is not read"),
        (changed({"name": "x", "type": ["string", "null"], "default": ""}), 'x: of unions only ["null", TYPE] is read'),
        (changed({"name": "x", "type": ["null", "string"]}), 'x: an optional field needs "default": null'),
        (changed({"name": "x", "type": "number"}), "x: the type 'number' is not read"),
        (changed({"name": "x", "type": "number"}), "date, or a complete record, enum, array or map"),
        (changed({"name": "machine", "type": "string", "pattern": "("}), "machine: pattern is no regular expression"),
        (changed({"name": "celsius", "type": "double", "pattern": "x"}), "celsius: pattern, values and codes are for"),
        (changed({"name": "x", "type": "string", "values": ["m1"], "example": "m2"}), "x: the example 'm2' is no"),
        (changed({"name": "hall", "type": "string", "codes": "planets"}), "hall: codes is 'planets'"),
        (changed({"name": "x", "type": DECIMAL | {"scale": 5}}), "x: a decimal has a precision of 1 to 38"),
        (
            changed({"name": "x", "type": {"type": "enum", "name": "Mode", "symbols": ["on"]}}),
            "several types have the name Mode: give each its own",
        ),
        (changed({"name": "x", "type": NESTED}), "x.y: the type 'uuid' is not read"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_schema_is_named_with_its_field(tmp_path: Path, schema: Any, problem: str) -> None:
    assert problem in problems(written(tmp_path, schema=schema))


def test_every_problem_of_every_file_is_named_at_once_with_its_line(tmp_path: Path) -> None:
    found = problems(written(tmp_path, DECLARATION.replace("plant", ""), changed({"name": "raw", "type": "uuid"})))
    assert "stream.toml line 2: owner" in found
    assert found.count("event.avsc line ") == 2


def test_problems_of_form_hide_none_of_meaning(tmp_path: Path) -> None:
    wrong = DECLARATION.replace("plant", "").replace('["hall"]', '["door"]').replace('"hall" }', '"celsius" }')
    assert problems(written(tmp_path, wrong)).splitlines() == [
        "stream.toml line 2: owner: it shows nothing",
        "stream.toml line 4: copies: door: the keys besides the first are hall",
        "stream.toml line 3: keys.hall: celsius is of type double; a key and a token are of type string",
    ]
    assert problems(written(tmp_path / "other", DECLARATION.replace('["hall"]', '["door"]'), "{")).splitlines() == [
        "event.avsc: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "stream.toml line 4: copies: door: the keys besides the first are hall",
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "event.avsc").unlink()
    assert problems(folder) == "event.avsc: No such file or directory"


def test_a_copy_has_no_field_that_an_older_library_need_not_know(tmp_path: Path) -> None:
    plain = read(written(tmp_path))
    write_copy(plain, tmp_path / "streams")
    kept = json.loads((tmp_path / "streams" / plain.name / "definition.json").read_text("utf-8"))
    assert kept.keys() == {
        *("name", "title", "owner", "keys", "copies", "retention", "app", "avro"),
        *(name for name in ("raw_topics", "sources") if getattr(plain, name)),
    }
    assert StreamDefinition.model_validate(kept) == plain
    assert StreamDefinition.model_validate(kept).digest == plain.digest
