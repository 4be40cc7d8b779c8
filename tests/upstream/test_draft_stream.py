"""`python -m lozenge_upstream.draft_stream`: the checks of a stream accept what it drafts, whatever the records."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge_upstream import check_mappings, check_samples
from lozenge_upstream.draft_stream import answer
from lozenge_upstream.stream_draft.draft import DraftRequest
from tests.streams import FOLDER, STREAMS

NOW = datetime(2026, 3, 2, 9, 30, 0, 5, tzinfo=UTC)
SENSORS = [
    {"id": "r-1", "at": 1772366400123, "machine_id": 7, "celsius": 21.5, "load": "0.75", "on": True, "state": "idle"},
    {"id": "r-2", "at": 1772366401123, "machine_id": 8, "celsius": 22, "load": "0.5", "on": False, "note": "hot"},
    {"id": "r-3", "at": 1772366402123, "machine_id": 7, "celsius": -1, "load": "1.00", "on": True, "state": "in use"},
]
ODD = [
    {
        "When": "2026-03-01T12:00:00",
        "user": {"Id": "u-1", "e.mail": "a@b.c"},
        "card": "5105105105105100",
        "expires_at": 1900000000,
        "comment": "x" * 200,
        "memo": "paid with 5105 1051 0510 5100",
        "flag": "true",
        "mixed": {"a": 1},
        "class": "first",
        "stream": "main",
        "value": 1.5,
        "reason": "none",
    },
    {
        "When": "2026-03-01T13:00:00",
        "user": {"Id": "u-2", "e.mail": None},
        "card": "4111111111111111",
        "flag": "perhaps",
        "mixed": 5,
        "tags": ["a"],
        "empty": {},
    },
]


def request(**given: Any) -> DraftRequest:
    asked = {"name": "sensors", "source": "plc", "topic": "PLC", "owner": "plant", "keys": {}} | given
    return DraftRequest(**asked)


def drafted(spark: SparkSession, records: Any, folder: Path, **given: Any) -> tuple[Streams, Mapping[str, Any]]:
    """The stream that the draft of these records is, read from its files, and the whole answer."""
    asked = request(**given)
    found = json.loads(answer(asked, json.dumps(records).encode(), STREAMS, lambda: spark, NOW))
    for name, text in found["files"].items():
        (folder / asked.name / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / asked.name / name).write_text(text, "utf-8")
    return Streams.of(folder), found


def accepted(spark: SparkSession, streams: Streams) -> int:
    """How many samples there are; all of them must become what they say, and the check must find nothing."""
    [name] = [each.name for each in streams.definitions]
    assert json.loads(check_mappings.answer(name, streams, lambda: spark))["problems"] == []
    samples = json.loads(check_samples.answer(name, "", streams, lambda: spark))["samples"]
    assert [each for each in samples if each["failures"]] == []
    return len(samples)


def test_a_draft_passes_its_own_checks_and_says_what_was_guessed(upstream_spark: SparkSession, tmp_path: Path) -> None:
    streams, found = drafted(upstream_spark, SENSORS, tmp_path, types={"state": "enum"})
    stream = streams.get()
    assert {field.name: (field.kind, field.optional) for field in stream.fields} == {
        "machine_id": ("string", False),
        "celsius": ("double", False),
        "load": ("decimal", False),
        "on": ("boolean", False),
        "state": ("enum", True),
        "note": ("string", True),
    }
    assert (stream.keys, stream.raw_topics, stream.owner) == ({"machine": "machine_id"}, ("PLC",), "plant")
    assert accepted(upstream_spark, streams) == 3
    said = " ".join(found["notes"])
    for guessed in (
        "event_time is at: milliseconds since 1970",
        "the id of a record is id",
        "key machine is machine_id",
    ):
        assert guessed in said
    assert "in_use" in found["files"]["samples/plc.toml"]


def test_records_as_nobody_would_design_them_become_a_draft_too(upstream_spark: SparkSession, tmp_path: Path) -> None:
    keys = {"user": "user.Id", "card": "card"}
    streams, found = drafted(
        upstream_spark, ODD, tmp_path, name="visits", source="web", zone="Europe/Berlin", keys=keys
    )
    stream = streams.get()
    kinds = {field.name: field.kind for field in stream.fields}
    assert kinds == {
        "user_id": "string",
        "user": "record",
        "card": "string",
        "expires_at": "timestamp-micros",
        "memo": "string",
        "class_": "string",
        "source_stream": "string",
        "value": "double",
        "reason": "string",
        "tags": "array",
    }, found["notes"]
    assert stream.tokens == {"card": "card"}
    assert "no field is the id of a record: one that comes twice is two events" in found["notes"]
    written = "".join(found["files"].values())
    assert "5105" not in written
    assert "4111" not in written
    assert 'card_numbers = "mask"' in written
    assert accepted(upstream_spark, streams) == 2


NESTED = [
    {
        "id": "o-1",
        "at": "2026-03-01T12:00:00Z",
        "user": {"user_id": "u-1", "device": {"os": "x", "seen": "2030-01-01T00:00:00Z", "note": None}},
        "items": [{"no": "a", "price": "1.50", "tags": ["x"], "card": "5105105105105100"}, {"no": "b", "price": "2.5"}],
        "scores": {"17": 0.5, "18": 1},
        "memo": [{"text": "paid with 5105105105105100"}],
        "grid": [[1, 2], [3]],
        "empty": [],
        "mixed": [1, {"a": 1}],
    },
    {
        "id": "o-2",
        "at": "2026-03-01T13:00:00Z",
        "user": {"user_id": "u-2", "device": None},
        "items": [],
        "scores": {},
        "memo": [],
        "grid": [],
    },
]  # fmt: skip


def test_nested_records_become_records_arrays_and_maps(upstream_spark: SparkSession, tmp_path: Path) -> None:
    keys = {"user": "user.user_id"}
    streams, found = drafted(upstream_spark, NESTED, tmp_path, name="orders", source="web", keys=keys)
    stream = streams.get()
    assert {field.name: (field.kind, field.optional) for field in stream.fields} == {
        "user_user_id": ("string", False),
        "user": ("record", True),
        "items": ("array", False),
        "scores": ("map", False),
        "memo": ("array", False),
        "grid": ("array", False),
    }, found["notes"]
    assert stream.tokens == {"items.card": "card"}
    said = " ".join(found["notes"])
    for guess in ("empty is not mapped: its lists are empty", "mixed is not mapped: its elements have different types"):
        assert guess in said
    mapping = found["files"]["mappings/web.toml"]
    assert 'of.fields.text = { transform = "text", path = "text", card_numbers = "mask" }' in mapping
    assert "seen is a time" in said, (said, mapping)
    assert accepted(upstream_spark, streams) == 2


def test_records_that_become_no_events_are_samples_of_dead_letters(
    upstream_spark: SparkSession, tmp_path: Path
) -> None:
    records = [*SENSORS, {"id": "r-4", "at": 1772366400123, "celsius": 1.0, "load": "1.00", "on": True}]
    streams, found = drafted(upstream_spark, records, tmp_path, keys={"machine": "machine_id"})
    assert "record 4 is a dead letter: missing:machine_id" in found["notes"]
    assert 'dead_letter = "missing:machine_id"' in found["files"]["samples/plc.toml"]
    assert accepted(upstream_spark, streams) == 4


def no_session() -> SparkSession:
    raise AssertionError("a person is asked before a Spark starts")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topic": "AUTH-JSON"}, "auth reads the raw topic AUTH-JSON"),
        ({"source": "auth_json"}, "auth has a source auth_json"),
        ({"types": {"celsius": "percent"}}, "there is no type percent"),
        ({"types": {"colour": "enum"}}, "the records have no field colour"),
        ({"time": "celsius"}, "celsius is no time"),
        ({"keys": {"flag": "on"}}, "the key flag: on is no text"),
        ({"keys": {"user": "user_id"}}, "the records have no field user_id"),
    ],
)
def test_what_a_person_has_to_say_otherwise_is_an_error(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        answer(request(**given), json.dumps(SENSORS).encode(), STREAMS, no_session, NOW)


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def test_a_record_of_hundreds_of_levels_is_refused() -> None:
    deep = json.dumps(SENSORS[0])[:-1] + ', "deep": ' + '{"a":' * 960 + "1" + "}" * 961
    for limit in (sys.getrecursionlimit(), 10_000):
        with recursion_limit(limit), pytest.raises(UsageError, match=r"more than 64 levels|is no JSON"):
            answer(request(), deep.encode(), STREAMS, no_session, NOW)


def test_a_zone_that_java_does_not_have_is_named(upstream_spark: SparkSession) -> None:
    asked = request(zone="Europe/Nowhere", keys={"user": "user.Id"})
    with pytest.raises(ConfigError, match="'Europe/Nowhere' is no zone"):
        answer(asked, json.dumps(ODD).encode(), STREAMS, lambda: upstream_spark, NOW)


def test_the_process_says_what_is_missing_on_stderr_and_by_its_exit_code() -> None:
    asked = json.dumps({"name": "s", "source": "s", "topic": "S", "owner": "o", "keys": {}})
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.draft_stream", asked],
        input=b'{"a": 1}',
        capture_output=True,
        env=os.environ | {STREAMS_VARIABLE: str(FOLDER)},
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"no field has a time in every record" in run.stderr
