"""`lozenge stream new`: the request that is made of the options, and the files of the answer."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.command import invoke

ANSWER = {
    "files": {"stream.toml": 'title = "Orders"\n', "samples/web.toml": "# größe\n"},
    "notes": ["event_time is at: ISO 8601"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "upstream" / "streams").mkdir(parents=True)
    (tmp_path / "records.jsonl").write_text('{"a": 1}', "utf-8")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The process that drafts, which needs Spark: what it was asked, and of what."""
    calls: list[Any] = []

    def run(command: list[str], **given: Any) -> "subprocess.CompletedProcess[bytes]":
        calls.append((command[2], json.loads(command[3]), given["input"]))
        return subprocess.CompletedProcess(command, 0, json.dumps(ANSWER).encode(), b"")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def new(project: Path, *options: str, name: str = "orders") -> Any:
    streams = str(project / "upstream" / "streams")
    return invoke("stream", "new", name, "--from", "records.jsonl", *options, cwd=project, LOZENGE_STREAMS=streams)


def test_the_files_of_the_draft_are_written_and_its_guesses_are_said(project: Path, asked: list[Any]) -> None:
    run = new(project, "--owner", "shop")
    assert run.returncode == 0
    folder = project / "upstream" / "streams" / "orders"
    written = {str(file.relative_to(folder)): file.read_text("utf-8") for file in folder.rglob("*") if file.is_file()}
    assert written == ANSWER["files"]
    assert "note: event_time is at: ISO 8601" in run.stdout
    assert "`lozenge stream test orders`" in run.stdout
    assert asked == [
        (
            "lozenge_upstream.draft_stream",
            {
                "name": "orders",
                "source": "orders",
                "topic": "ORDERS",
                "owner": "shop",
                "keys": {},
                "time": "",
                "own_id": None,
                "types": {},
                "zone": "",
            },
            b'{"a": 1}',
        )
    ]
    again = new(project)
    assert (again.returncode, "exists already" in again.stderr, len(asked)) == (2, True, 1)


def test_options_say_what_records_do_not(project: Path, asked: list[Any]) -> None:
    options = ("--key", "user=user_id", "--key", "shop=shop.id", "--time", "at", "--id", "none", "--zone", "UTC")
    run = new(
        project, *options, "--type", "sum=decimal", "--source", "web", "--topic", "WEB.1", "--dry-run", "-o", "json"
    )
    [(_, request, _)] = asked
    assert {name: request[name] for name in ("keys", "time", "own_id", "types", "zone", "source", "topic")} == {
        "keys": {"user": "user_id", "shop": "shop.id"},
        "time": "at",
        "own_id": "none",
        "types": {"sum": "decimal"},
        "zone": "UTC",
        "source": "web",
        "topic": "WEB.1",
    }
    assert list(request["keys"]) == ["user", "shop"]
    assert json.loads(run.stdout)["notes"] == ANSWER["notes"]
    assert not (project / "upstream" / "streams" / "orders").exists()


@pytest.mark.parametrize(
    ("options", "name", "problem"),
    [
        ((), "Orders", "a name has lower-case letters, digits and underscores, not 'Orders'"),
        (("--source", "a-b"), "orders", "--source: a name has"),
        (("--key", "user"), "orders", "write it as --key user=user_id"),
        (("--key", "a=b", "--key", "a=c"), "orders", "each name once"),
        (("--from", "nowhere.json"), "orders", "reading nowhere.json: No such file or directory"),
    ],
)
def test_what_is_wrong_in_the_command_is_said_before_a_spark_starts(
    options: tuple[str, ...], name: str, problem: str, project: Path, asked: list[Any]
) -> None:
    run = new(project, *options, name=name)
    assert (run.returncode, asked) == (2, [])
    assert problem in run.stderr
