"""The samples of a stream as a person sees them, and what a deploy makes of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lozenge_deploy.cli.printing.output import OutputFormat
from lozenge_deploy.cli.stream.samples import require_passed
from lozenge_deploy.control.client import ChangeFailed
from tests.deploy.command import invoke

WRONG = [
    {"field": "amount", "expected": "12.05", "got": "12.5"},
    {"field": "", "expected": "an event", "got": "a dead letter: empty"},
]
ANSWER = {
    "samples": [
        {"source": "wallet", "sample": "a sale", "failures": WRONG},
        {"source": "wallet", "sample": "a refund", "failures": []},
    ],
    "without": ["till"],
}
PASSED: dict[str, Any] = {"samples": [{"source": "w", "sample": "s", "failures": []}], "without": []}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The process that runs samples, which needs Spark: its answers, to be appended; then what it was asked."""
    answers: list[Any] = []

    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[bytes]":
        answer = answers.pop(0)
        answers.append(command[2:])
        return subprocess.CompletedProcess(command, 0, json.dumps(answer).encode(), b"")

    monkeypatch.setattr(subprocess, "run", run)
    return answers


def test_every_field_that_a_sample_did_not_expect_is_a_row(asked: list[Any], tmp_path: Path) -> None:
    asked.append(ANSWER)
    run = invoke("stream", "test", "pay", cwd=tmp_path)
    assert run.returncode == 1
    rows = [line.split() for line in run.stdout.splitlines()]
    assert ["wallet", "a", "sale", "amount", "12.05", "12.5"] in rows
    assert any("-" in row and "empty" in row for row in rows)
    assert "1 passed, 1 failed" in run.stdout
    assert "the source till has no samples" in run.stderr
    assert asked == [["lozenge_upstream.check_samples", "pay"]]
    asked[:] = [ANSWER]
    run = invoke("stream", "test", "pay", "--source", "wallet", "-o", "json", cwd=tmp_path)
    assert (run.returncode, json.loads(run.stdout)) == (1, ANSWER)
    assert asked == [["lozenge_upstream.check_samples", "pay", "wallet"]]


def test_samples_that_are_as_expected_are_counted(asked: list[Any], tmp_path: Path) -> None:
    asked.append(PASSED)
    run = invoke("stream", "test", "pay", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "1 passed\n")


def test_a_deploy_is_refused_after_every_sample_that_fails_was_shown(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    asked.append(ANSWER)
    with pytest.raises(ChangeFailed, match="1 of its 2 samples become something else") as caught:
        require_passed("pay", OutputFormat.TABLE)
    assert caught.value.exit_code == 1
    assert "--no-test deploys without" in caught.value.hint
    shown = capsys.readouterr().out
    assert ("12.05" in shown, "a dead letter: empty" in shown, "1 passed, 1 failed" in shown) == (True, True, True)
    asked[:] = [ANSWER]
    with pytest.raises(ChangeFailed):
        require_passed("pay", OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == ANSWER


def test_a_deploy_of_samples_that_pass_says_nothing_and_without_samples_it_warns(
    asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    asked.append(PASSED)
    require_passed("pay", OutputFormat.TABLE)
    assert asked == [["lozenge_upstream.check_samples", "pay", "--or-none"]]
    assert capsys.readouterr() == ("", "")
    asked[:] = [{"samples": [], "without": ["till", "wallet"]}]
    require_passed("pay", OutputFormat.TABLE)
    out, err = capsys.readouterr()
    assert (out, "till has no samples" in err, "wallet has no samples" in err) == ("", True, True)
