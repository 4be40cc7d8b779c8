"""What the report of a detector's tests says."""

import subprocess
import sys
from pathlib import Path

import pytest

from lozenge.errors import DetectorError
from lozenge_deploy.releases import test_run
from lozenge_deploy.releases.test_report import read, unproved

TESTS = """
import pytest


def test_fires_at_night():
    assert True


@pytest.mark.skip(reason="another day")
def test_stays_silent_by_day():
    assert True


def test_knows_its_limits():
    raise ValueError("too much")
"""


def test_each_test_has_its_outcome_and_a_skipped_one_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_spotter.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").touch()
    report = tmp_path / "report.xml"
    command = test_run.test_command(Path(sys.executable), report, tmp_path)
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    outcomes = read(report)
    assert [(v.test, v.outcome, v.reason) for v in outcomes] == [
        ("test_fires_at_night", "passed", ""),
        ("test_stays_silent_by_day", "skipped", "another day"),
        ("test_knows_its_limits", "failed", "ValueError: too much"),
    ]
    assert unproved(outcomes) == ["test_stays_silent"]


def test_each_test_is_named_when_it_has_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "test_spotter.py").write_text(TESTS)
    with test_run.running_tests(tmp_path, Path(sys.executable)) as passed, pytest.raises(DetectorError):
        passed()
    lines = [line.split()[:2] for line in capfd.readouterr().err.splitlines() if line.startswith("  ")]
    assert lines[:3] == [
        ["passed", "test_fires_at_night"],
        ["skipped", "test_stays_silent_by_day"],
        ["failed", "test_knows_its_limits"],
    ]


def test_tests_that_do_not_end_are_ended_at_their_limit_and_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "test_spotter.py").write_text("import time\n\ndef test_fires():\n    time.sleep(3600)\n")
    running = test_run.running_tests(tmp_path, Path(sys.executable), limit=2.0)
    with (
        running as passed,
        pytest.raises(DetectorError, match=r"within 2s, the last is (test_fires|none)") as refused,
    ):
        passed()
    assert "--test-limit" in refused.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        '[tool.pytest.ini_options]\naddopts = "-k fires"\n',
        '[tool.pytest]\naddopts = ["--deselect", "test_spotter.py::test_knows_its_limits"]\n',
        '[tool.pytest.ini_options]\naddopts = "--maxfail=1 --ignore=test_spotter.py"\n',
    ],
)
def test_no_setting_of_a_folder_leaves_a_test_out(settings: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "test_spotter.py").write_text(TESTS)
    command = test_run.test_command(Path(sys.executable), tmp_path / "report.xml", tmp_path)
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert [each.outcome for each in read(tmp_path / "report.xml")] == ["passed", "skipped", "failed"]


def test_no_variable_of_the_caller_leaves_a_test_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k fires")
    monkeypatch.setenv("PYTEST_PLUGINS", "not_there")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "test_spotter.py").write_text(TESTS)
    with test_run.running_tests(tmp_path, Path(sys.executable)) as passed, pytest.raises(DetectorError, match="fail"):
        passed()


def test_options_of_one_run_select_tests(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "test_spotter.py").write_text(TESTS)
    command = test_run.test_command(Path(sys.executable), tmp_path / "report.xml", tmp_path, "-k", "fires")
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert [each.test for each in read(tmp_path / "report.xml")] == ["test_fires_at_night"]


def test_without_a_report_nothing_is_proved(tmp_path: Path) -> None:
    assert read(tmp_path / "report.xml") == []
    assert unproved([]) == ["test_fires", "test_stays_silent"]


def test_a_release_needs_both_cases_to_have_passed(tmp_path: Path) -> None:
    good, _, _ = TESTS.partition("def test_knows")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "test_spotter.py").write_text(good)
    with test_run.running_tests(tmp_path, Path(sys.executable)) as passed, pytest.raises(DetectorError) as refused:
        passed()
    assert "no test test_stays_silent... has passed" in str(refused.value)
    (tmp_path / "test_spotter.py").write_text(good.replace('@pytest.mark.skip(reason="another day")', ""))
    with test_run.running_tests(tmp_path, Path(sys.executable)) as passed:
        passed()


def test_modules_of_a_folder_never_replace_those_of_python(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name in ("random.py", "statistics.py", "calendar.py"):
        (tmp_path / name).write_text("raise ImportError('this is no module of Python')\n")
    (tmp_path / "test_spotter.py").write_text(
        "def test_fires():\n    import calendar\n\n    assert calendar.MONDAY == 0\n"
    )
    run_in = tmp_path / "elsewhere"
    run_in.mkdir()
    command = test_run.test_command(Path(sys.executable), tmp_path / "report.xml", run_in)
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert [each.outcome for each in read(tmp_path / "report.xml")] == ["passed"], run.stdout + run.stderr


def test_the_environment_of_a_detector_gets_pytest_alone(tmp_path: Path) -> None:
    code = test_run.test_command(Path(sys.executable), tmp_path / "report.xml", tmp_path)[-1]
    linked = {path.name for path in (tmp_path / "pytest").iterdir()}
    assert {"pytest", "_pytest", "pluggy", "packaging", "iniconfig", "pygments"} <= linked
    assert not {"rich", "typer", "hypothesis", "xdist", "lozenge_deploy"} & linked
    assert all(path.exists() for path in (tmp_path / "pytest").iterdir())
    assert "site-packages" not in code
