"""A report names the very sources that were measured."""

import subprocess
from pathlib import Path

import pytest

from tests.bench.harness.machine import commit_of, description


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    done = subprocess.run(["git", *author, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_commit_is_named_and_marked_where_files_differ_from_it(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("one = 1\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "--short", "HEAD")
    source.write_text("one = 2\n")
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "--short", "HEAD") + "-dirty"


def test_without_a_checkout_or_git_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit_of(tmp_path) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) == ""


def test_the_machine_is_in_the_report() -> None:
    assert description()["commit"] == commit_of(Path(__file__).parent)
