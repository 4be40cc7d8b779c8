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
from lozenge.streams.folder import MAPPINGS
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge_upstream.check_mappings import answer
from tests.streams import FOLDER, STREAMS


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
    found = json.loads(answer("auth", Streams.of(tmp_path / "streams"), lambda: upstream_spark))
    assert [mapping["source"] for mapping in found["mappings"]] == ["auth_iso8583"]
    assert any(problem.startswith("auth_json: mcc: ") for problem in found["problems"])
    assert any(problem.startswith("empty.toml: ") for problem in found["problems"])


def test_a_stream_that_there_is_not_is_an_error_of_usage_before_a_spark_starts() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.check_mappings", "claims"],
        env=os.environ | {STREAMS_VARIABLE: str(FOLDER)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert "there is no stream claims" in run.stderr
