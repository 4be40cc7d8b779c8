"""`python -m lozenge_upstream.try_records`: one answer for each record of its input."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.try_records import answer, explained, mapping_of, records_in
from tests.streams import AUTH, AUTH_MAPPINGS, FOLDER
from tests.upstream.samples import flat, iso

PRETTY = json.dumps(json.loads(flat()), indent=2).encode()


@pytest.mark.parametrize(
    ("text", "records"),
    [
        (flat(), [flat()]),
        (flat() + b"\n\n" + flat(mcc=1) + b"\n", [flat(), flat(mcc=1)]),
        (PRETTY + b"\n", [PRETTY]),
        (b"no json\n{}", [b"no json\n{}"]),
        (b"{}\nno json", [b"{}", b"no json"]),
        (b"", [b""]),
        (b"[" + flat() + b",\n " + PRETTY + b" ]\n", [flat(), PRETTY]),
        (b"[" + flat() + b"]\n[1, {}]", [flat(), b"1", b"{}"]),
        ('\ufeff[{}, "]"]'.encode(), [b"{}", b'"]"']),
        (b"null\n3", [b"null", b"3"]),
        (b"[" * 100_000, [b"[" * 100_000]),
        (b"\xff", [b"\xff"]),
    ],
)
def test_a_line_is_a_record_or_the_whole_input_is_one(text: bytes, records: list[bytes]) -> None:
    assert records_in(text) == records


def test_an_array_without_records_is_an_error_of_usage() -> None:
    with pytest.raises(UsageError, match="the array has none"):
        records_in(b" [ ] ")


@pytest.mark.parametrize(
    ("record", "meaning"),
    [
        (b"null", "the record is JSON, but null and no object"),
        (b"3", "the record is JSON, but a number and no object"),
        (b"true", "the record is JSON, but a truth value and no object"),
        (b'"{}"', "the record is JSON, but a text and no object"),
        (b"[{}]", "the record is JSON, but an array and no object"),
        (b"{'a': 1}", "the value is no JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        (b'{"a": NaN}', "the value is no JSON object: its JSON is broken"),
        (b"[" * 100_000, "the value is no JSON object: its JSON is broken"),
    ],
)
def test_what_is_no_json_object_is_said(record: bytes, meaning: str) -> None:
    assert explained(record, "invalid-json").startswith(meaning)


def test_an_unknown_source_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    shutil.copytree(AUTH_MAPPINGS, tmp_path, dirs_exist_ok=True)
    for source in ("nobody", ""):
        with pytest.raises(UsageError, match="name one by --source: auth_iso8583, auth_json"):
            mapping_of(source, mapping_files.read(tmp_path, AUTH))
    (tmp_path / "wrong.toml").write_text('source = "mine"')
    read = mapping_files.read(tmp_path, AUTH)
    with pytest.raises(ConfigError, match=r"wrong.toml: topic"):
        mapping_of("mine", read)


def test_the_only_mapping_of_a_stream_need_not_be_named() -> None:
    read = mapping_files.read(AUTH_MAPPINGS, AUTH)
    only = mapping_files.Mappings(read.usable[:1], [])
    assert mapping_of("", only) == read.usable[0]


def test_the_answer_is_what_becomes_of_each_record(upstream_spark: SparkSession) -> None:
    text = flat() + b"\n" + flat(merchant=None)
    tried = json.loads(answer("auth", "auth_json", text, UpstreamSettings.load()))
    assert [each["problems"] for each in tried] == [[], ["missing:merchant_id"]]
    assert tried[0]["event"]["merchant_id"] == "m-1"
    assert [len(each["sentences"]) for each in tried] == [0, 1]
    assert tried[1]["sentences"][0].startswith("merchant_id: the record lacks")
    [skipped] = json.loads(answer("auth", "auth_iso8583", iso(mti="0800"), UpstreamSettings.load()))
    assert (skipped["event"], skipped["skipped"]) == (None, "auth_iso8583/no_payment")


def test_the_process_says_what_is_wrong_on_stderr_and_by_its_exit_code() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lozenge_upstream.try_records", "auth", "nobody"],
        input=b"{}",
        capture_output=True,
        env=os.environ | {STREAMS_VARIABLE: str(FOLDER)},
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"there is no mapping of the source nobody" in run.stderr
