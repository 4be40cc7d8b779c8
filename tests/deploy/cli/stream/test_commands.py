"""`lozenge stream`: what a person sees of streams, of their checks and of records that are tried."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.command import invoke
from tests.streams import FOLDER

EVENT = {"event": {"event_id": "e-1", "amount": "12.5"}, "problems": [], "skipped": ""}
DEAD: dict[str, Any] = {"event": None, "problems": ["missing:merchant_id", "type:amount"], "skipped": ""}
DEAD["sentences"] = ["merchant_id: the record lacks it", "amount: it is an object"]
SKIPPED: dict[str, Any] = {"event": None, "problems": [], "skipped": "wallet/probe"}


class Input(io.TextIOWrapper):
    """Stdin with these bytes."""

    def __init__(self, given: bytes) -> None:
        super().__init__(io.BytesIO(given))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The process that knows mappings, which needs Spark: what it was asked; it answers with the input."""
    calls: list[Any] = []

    def run(command: list[str], **given: Any) -> "subprocess.CompletedProcess[bytes]":
        calls.append(command[1:])
        said = given["input"]
        failed = said == b"nobody"
        return subprocess.CompletedProcess(command, 2 if failed else 0, said, b"there is no mapping" if failed else b"")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def tried(records: object, monkeypatch: pytest.MonkeyPatch, *options: str, cwd: Path) -> Any:
    given = records if isinstance(records, bytes) else json.dumps(records).encode()
    monkeypatch.setattr(sys, "stdin", Input(given))
    return invoke("stream", "try", "pay", *options, cwd=cwd)


def test_an_event_is_shown_field_by_field(asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = tried([EVENT], monkeypatch, cwd=tmp_path)
    assert run.returncode == 0
    assert [line.split() for line in run.stdout.splitlines() if line.startswith(("event_id", "amount"))] == [
        ["event_id", "e-1"],
        ["amount", "12.5"],
    ]
    assert asked == [["-m", "lozenge_upstream.try_records", "pay"]]


def test_the_reasons_of_a_dead_letter_are_shown_and_the_exit_code_says_so(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = tried([EVENT, DEAD, SKIPPED], monkeypatch, cwd=tmp_path)
    assert run.returncode == 1
    assert "record 2 is a dead letter: missing:merchant_id, type:amount" in run.stdout
    assert "\n  - merchant_id: the record lacks it\n  - amount: it is an object\n" in run.stdout
    assert "record 3 is skipped: wallet/probe" in run.stdout
    assert tried([SKIPPED], monkeypatch, cwd=tmp_path).returncode == 0


def test_a_source_is_named_where_the_stream_has_several(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried([EVENT], monkeypatch, "--source", "wallet", cwd=tmp_path)
    assert asked == [["-m", "lozenge_upstream.try_records", "pay", "wallet"]]


def test_as_json_it_is_what_the_process_answered(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert json.loads(tried([EVENT, DEAD], monkeypatch, "-o", "json", cwd=tmp_path).stdout) == [EVENT, DEAD]


def test_what_the_process_cannot_do_is_an_error_of_the_command(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = tried(b"nobody", monkeypatch, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "there is no mapping" in run.stderr


def checked(answer: object, monkeypatch: pytest.MonkeyPatch, cwd: Path, *options: str) -> Any:
    done = subprocess.CompletedProcess([], 0, json.dumps(answer).encode(), b"")
    monkeypatch.setattr(subprocess, "run", lambda command, **given: done)
    return invoke("stream", "check", "pay", *options, cwd=cwd)


def test_every_problem_of_a_stream_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mapping = {"source": "wallet", "topic": "WALLET"}
    run = checked({"mappings": [mapping], "problems": ["a.toml: topic", "b.toml: zone"]}, monkeypatch, tmp_path)
    assert run.returncode == 2
    assert [line.strip() for line in run.stderr.splitlines()][1:3] == ["- a.toml: topic", "- b.toml: zone"]
    run = checked({"mappings": [mapping], "problems": []}, monkeypatch, tmp_path, "-o", "json")
    assert (run.returncode, json.loads(run.stdout)) == (0, [mapping])


def test_the_streams_of_a_project_are_listed(tmp_path: Path) -> None:
    run = invoke("stream", "ls", "-o", "json", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
    auth, login = json.loads(run.stdout)
    assert (auth["stream"], auth["raw topics"]) == ("auth", "AUTH-ISO, AUTH-JSON")
    assert (login["stream"], login["raw topics"]) == ("login", "LOGIN-JSON")
    assert auth["keys"].startswith("card, ")
