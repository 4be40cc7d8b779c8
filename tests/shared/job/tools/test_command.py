"""The commands share one program: JSON lines on stdout, errors on stderr, the exit codes of a job."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError
from lozenge.job.tools import command
from tests.shared.detector_folder import MODULE, write_detector

PRINTS_AT_IMPORT = 'print("imported")\n' + MODULE


@pytest.fixture(autouse=True)
def _logs_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging keeps its configuration, which outlives the captured stderr of a test."""
    monkeypatch.setattr("lozenge.process.logging.configure", lambda app: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_detector(tmp_path, "noisy", module=PRINTS_AT_IMPORT)
    monkeypatch.setattr(sys, "argv", ["describe", str(folder)])
    return folder


def results(loaded: LoadedDetector, _: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    print("called")
    os.write(1, b"written by native code\n")
    yield {"detector": loaded.name}
    yield {"number": 2}


def test_each_result_is_a_json_line_and_other_output_goes_to_stderr(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command.main("describe", None, results) == 0
    written = capfd.readouterr()
    assert [json.loads(line) for line in written.out.splitlines()] == [{"detector": "noisy"}, {"number": 2}]
    assert "imported" in written.err
    assert "called" in written.err
    assert "written by native code" in written.err


def test_an_error_is_written_to_stderr_and_is_the_exit_code(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def failing(loaded: LoadedDetector, _: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
        yield {"detector": loaded.name}
        raise ConfigError("reading settings: no limit", hint="set one")

    assert command.main("describe", None, failing) == ConfigError.exit_code
    written = capfd.readouterr()
    assert len(written.out.splitlines()) == 1
    assert "reading settings: no limit" in written.err


def test_an_unknown_detector_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["describe", str(tmp_path / "nothing")])
    assert command.main("describe", None, results) > 0
    assert capfd.readouterr().out == ""


def test_steps_end_after_the_one_in_which_a_signal_came() -> None:
    def steps() -> Iterator[int]:
        yield 1
        os.kill(os.getpid(), signal.SIGTERM)
        yield 2
        yield 3

    assert list(command.until_stopped(steps(), "testing")) == [1, 2]
