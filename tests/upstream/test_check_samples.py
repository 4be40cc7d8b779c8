"""`python -m lozenge_upstream.check_samples`: the samples of every stream become what they must."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge_upstream.check_samples import answer
from tests.streams import FOLDER, STREAMS

CHANGES = (
    ('amount = "12.50"', 'amount = "12.05"'),
    ('channel = "pos"\nauth', 'channel = "atm"\nauth'),
    ('absent = ["account_id"]', 'absent = ["merchant_id"]'),
    ('dead_letter = "pan:merchant_id"', "event = {}"),
    ('dead_letter = "invalid-json"', 'dead_letter = "empty"'),
)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the project's streams."""
    shutil.copytree(FOLDER, tmp_path / "streams")
    return tmp_path / "streams"


@pytest.mark.parametrize("stream", [each.name for each in STREAMS.definitions])
def test_the_samples_of_every_stream_become_what_they_must(stream: str, upstream_spark: SparkSession) -> None:
    found = json.loads(answer(stream, "", STREAMS, lambda: upstream_spark))
    failed = [each for each in found["samples"] if each["failures"]]
    assert (failed, found["without"]) == ([], [])
    assert len(found["samples"]) > 2


def test_every_field_of_every_sample_that_differs_is_named(upstream_spark: SparkSession, copied: Path) -> None:
    file = copied / "auth" / "samples" / "auth_json.toml"
    text = file.read_text("utf-8")
    for old, new in CHANGES:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text, "utf-8")
    (copied / "auth" / "samples" / "auth_iso8583.toml").unlink()
    found = json.loads(answer("auth", "", Streams.of(copied), lambda: upstream_spark))
    assert found["without"] == ["auth_iso8583"]
    failures: list[list[dict[str, Any]]] = [each["failures"] for each in found["samples"]]
    assert failures == [
        [
            {"field": "amount", "expected": "12.05", "got": "12.5"},
            {"field": "channel", "expected": "atm", "got": "pos"},
        ],
        [{"field": "merchant_id", "expected": "absent", "got": "m-2"}],
        [],
        [{"field": "", "expected": "an event", "got": "a dead letter: pan:merchant_id"}],
        [],
        [{"field": "", "expected": "a dead letter: empty", "got": "a dead letter: invalid-json"}],
    ]


def no_session() -> SparkSession:
    raise AssertionError("what is wrong in a file is found without Spark")


def test_a_stream_without_samples_is_an_error_that_says_how_to_write_one(copied: Path) -> None:
    (copied / "auth" / "samples" / "auth_iso8583.toml").unlink()
    with pytest.raises(UsageError) as caught:
        answer("auth", "auth_iso8583", Streams.of(copied), no_session)
    assert "it has no samples of the source auth_iso8583" in str(caught.value)
    assert "[[sample]]" in caught.value.hint
    shutil.rmtree(copied / "auth" / "samples")
    with pytest.raises(UsageError, match="it has no samples"):
        answer("auth", "", Streams.of(copied), no_session)
    with pytest.raises(UsageError, match="name one of auth_iso8583, auth_json"):
        answer("auth", "wallet", Streams.of(copied), no_session)


def test_mappings_without_samples_are_planned(copied: Path, upstream_spark: SparkSession) -> None:
    shutil.rmtree(copied / "auth" / "samples")
    answered = answer("auth", "", Streams.of(copied), lambda: upstream_spark, or_none=True)
    assert json.loads(answered) == {"samples": [], "without": ["auth_iso8583", "auth_json"]}
    file = copied / "auth" / "mappings" / "auth_json.toml"
    file.write_text(file.read_text("utf-8").replace("[0-9]{4}", "(?P<x>[0-9]{4})"), "utf-8")
    with pytest.raises(ConfigError, match=r"auth_json.toml line 13: fields.mcc.pattern: "):
        answer("auth", "", Streams.of(copied), lambda: upstream_spark, or_none=True)


def test_what_is_wrong_in_mappings_and_samples_is_an_error(copied: Path) -> None:
    file = copied / "auth" / "samples" / "auth_json.toml"
    file.write_text(file.read_text("utf-8").replace('amount = "12.50"', 'amount = "much"', 1), "utf-8")
    with pytest.raises(ConfigError, match=r"samples/auth_json.toml line 21: a payment in a shop: amount is a decimal"):
        answer("auth", "", Streams.of(copied), no_session)
    (copied / "auth" / "mappings" / "wrong.toml").write_text('source = "x"', "utf-8")
    with pytest.raises(ConfigError, match=r"wrong.toml: topic"):
        answer("auth", "", Streams.of(copied), no_session)


def test_the_process_says_what_is_wrong_on_stderr_and_by_its_exit_code() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.check_samples", "auth", "nobody"],
        capture_output=True,
        env=os.environ | {STREAMS_VARIABLE: str(FOLDER)},
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"there is no source nobody" in run.stderr
