"""`python -m lozenge_upstream.check_mappings`: what upstream can run of a stream's mappings, and all that is wrong."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.errors import UsageError
from lozenge.streams.folder import MAPPINGS, SAMPLES
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge_upstream.check_mappings import answer
from tests.streams import FOLDER, STREAMS, with_json_alone


def edit(file: Path, *pairs: str) -> None:
    """Replaces texts of a file, each of which it has."""
    text = file.read_text("utf-8")
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text, "utf-8")


def no_session() -> SparkSession:
    raise AssertionError("nothing is left to ask Java")


@pytest.fixture(autouse=True)
def copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder of streams that a test may copy."""
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path / "streams"))


def test_the_mappings_of_a_stream_are_named_with_their_topics(upstream_spark: SparkSession) -> None:
    assert json.loads(answer("auth", STREAMS, lambda: upstream_spark)) == {
        "mappings": [{"source": "auth_iso8583", "topic": "AUTH-ISO"}, {"source": "auth_json", "topic": "AUTH-JSON"}],
        "problems": [],
    }
    with pytest.raises(UsageError, match="there is no stream claims"):
        answer("claims", STREAMS, lambda: upstream_spark)


def test_every_problem_is_named_also_what_java_refuses(upstream_spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "streams")
    mappings = tmp_path / "streams" / "auth" / MAPPINGS
    declared = (mappings / "auth_json.toml").read_text("utf-8")
    (mappings / "auth_json.toml").write_text(declared.replace("[0-9]{4}", "(?P<x>[0-9]{4})"), "utf-8")
    (mappings / "empty.toml").write_text("", "utf-8")
    samples = tmp_path / "streams" / "auth" / SAMPLES / "auth_json.toml"
    samples.write_text(samples.read_text("utf-8").replace("dead_letter = ", 'dead_letter = "odd:" # ', 1), "utf-8")
    found = json.loads(answer("auth", Streams.load(), lambda: upstream_spark))
    assert [mapping["source"] for mapping in found["mappings"]] == ["auth_iso8583"]
    for said in ("mappings/auth_json.toml line 13: fields.mcc.pattern: ", "mappings/empty.toml: ", "samples/auth_json"):
        assert any(problem.startswith(said) for problem in found["problems"]), found


def test_what_java_refuses_is_named_with_all_that_is_wrong_otherwise(
    upstream_spark: SparkSession, tmp_path: Path
) -> None:
    """One mapping with problems of form, of meaning and of Java, in a stream whose declaration is wrong too."""
    folder = with_json_alone(tmp_path)
    edit(folder / "auth" / "stream.toml", 'owner = "', 'owner = "" # "')
    edit(
        folder / "auth" / MAPPINGS / "auth_json.toml",
        'code = "alpha" }\namount',
        'code = "beta" }\namount',
        'keyed_by = "card"',
        'keyed_by = "wallet"',
        "[0-9]{4}",
        "a{,3}",
    )
    found = json.loads(answer("auth", Streams.load(), lambda: upstream_spark))["problems"]
    assert [" ".join(problem.split(": ")[:2]) for problem in found] == [
        "stream.toml line 3 owner",
        "mappings/auth_json.toml line 4 keyed_by",
        "mappings/auth_json.toml line 14 fields.country.code",
        "mappings/auth_json.toml line 13 fields.mcc.pattern",
    ]


def test_a_pattern_of_the_schema_is_asked_of_java_too(upstream_spark: SparkSession, tmp_path: Path) -> None:
    """Python accepts this one, and upstream would end at the first record."""
    folder = with_json_alone(tmp_path)
    edit(folder / "auth" / "event.avsc", "[0-9]{4}", "(?P<code>[0-9]{4})")
    [problem] = json.loads(answer("auth", Streams.load(), lambda: upstream_spark))["problems"]
    assert problem.startswith("event.avsc: mcc: '(?P<code>[0-9]{4})' is no regular expression of Java's: ")


def test_where_the_schema_cannot_be_read_the_form_of_the_mappings_is_checked(tmp_path: Path) -> None:
    folder = with_json_alone(tmp_path)
    (folder / "auth" / "event.avsc").write_text("{", "utf-8")
    edit(folder / "auth" / MAPPINGS / "auth_json.toml", "[fields]", 'colour = "red"\n[fields]')
    found = json.loads(answer("auth", Streams.load(), no_session))["problems"]
    assert [" ".join(problem.split(": ")[:2]) for problem in found] == [
        "event.avsc not JSON",
        "mappings/auth_json.toml line 6 colour",
    ]


def test_a_stream_that_there_is_not_is_an_error_of_usage_before_a_spark_starts() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.check_mappings", "claims"],
        env=os.environ | {STREAMS_VARIABLE: str(FOLDER)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert "there is no stream claims" in run.stderr
