"""`lozenge new`, `lozenge check` and `lozenge test`; what the tests of new detectors find is tested with Spark."""

import json
from pathlib import Path

import pytest

from lozenge.testing.invariants import INVARIANTS
from lozenge_deploy.releases.test_run import proof_of
from tests.deploy.cli.conftest import made
from tests.deploy.command import invoke, lozenge
from tests.deploy.sparkless_environments import install

TESTS = """
from types import SimpleNamespace

from lozenge.testing import plugin


def replayed(subject: object) -> None:
    raise AssertionError("1 with another reason\\n  and an example")


plugin.RunRecorder.subject = SimpleNamespace(baseline=["an alert"])
plugin.INVARIANTS = dict.fromkeys(plugin.INVARIANTS, lambda _: None) | {"replayed": replayed}


def test_fires() -> None:
    pass
"""
"""Tests under faults that need no Spark: all but one pass."""


def test_new_then_check_from_the_checkout_and_from_within_the_folder(checkout: Path) -> None:
    run = invoke("new", "spotter", "--kind", "stateful", "--owner", "ann", cwd=checkout)
    assert (run.returncode, len(run.stdout.splitlines())) == (0, 4)
    assert "lozenge test spotter" in run.stderr
    for arguments, cwd in ((["check", "spotter"], checkout), (["check", "."], checkout / "detectors" / "spotter")):
        run = invoke(*arguments, cwd=cwd)
        assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("name", ["Spotter", "1st", "a-b", "../up"])
def test_new_refuses_a_name_that_could_not_be_a_topic(checkout: Path, name: str) -> None:
    run = invoke("new", name, cwd=checkout)
    assert run.returncode == 2
    assert "lower-case letters, digits and underscores" in run.stderr
    assert list((checkout / "detectors").iterdir()) == []


@pytest.mark.parametrize("name", ["json", "class", "pytest", "lozenge", "upstream"])
def test_new_refuses_a_name_that_is_taken(checkout: Path, name: str) -> None:
    run = invoke("new", name, cwd=checkout)
    assert run.returncode == 2
    assert "has that name" in run.stderr
    assert list((checkout / "detectors").iterdir()) == []


def test_the_settings_of_a_new_detector_have_a_name_of_their_own(checkout: Path) -> None:
    made(checkout, "fold", "stateful")
    module = (checkout / "detectors" / "fold" / "fold.py").read_text()
    assert "class FoldSettings(Settings):" in module
    assert "settings=FoldSettings)" in module


def test_new_never_writes_over_a_folder(checkout: Path) -> None:
    made(checkout, "spotter")
    run = invoke("new", "spotter", cwd=checkout)
    assert run.returncode == 2
    assert "exists already" in run.stderr


def test_check_shows_every_problem(checkout: Path) -> None:
    made(checkout, "spotter")
    (checkout / "detectors" / "spotter" / "README.md").unlink()
    run = invoke("check", "spotter", cwd=checkout)
    assert run.returncode == 2
    assert "checking spotter: 1 problem(s)\n  - README.md: missing" in run.stderr
    run = invoke("check", "spotter", "-o", "json", cwd=checkout)
    assert [row["detector"] for row in json.loads(run.stdout)] == ["spotter"]


def test_test_shows_each_test_and_a_line_for_each_fault(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    made(checkout, "spotter")
    folder = checkout / "detectors" / "spotter"
    (folder / "test_spotter.py").write_text(TESTS)
    install(folder, tested=False)
    run = lozenge("test", "spotter", cwd=checkout)
    assert run.returncode == 1
    assert "testing spotter: its tests fail" in run.stderr
    rows = {words[0]: words[1:] for line in run.stdout.splitlines() if (words := line.split())}
    found = {fault: rows[fault][0] for fault in INVARIANTS}
    assert found == dict.fromkeys(INVARIANTS, "passed") | {"replayed": "failed"}
    assert " ".join(rows["replayed"]).endswith("1 with another reason")

    run = lozenge("test", "spotter", "-o", "json", cwd=checkout)
    outcomes = {verdict["test"]: verdict["outcome"] for verdict in json.loads(run.stdout)}
    assert outcomes == {"test_fires": "passed"} | {f"fault[{fault}]": outcome for fault, outcome in found.items()}

    run = lozenge("test", "spotter", "--", "-k", "not replayed", cwd=checkout)
    assert run.returncode == 0, run.stdout + run.stderr
    (folder / "test_spotter.py").unlink()
    run = lozenge("test", "spotter", cwd=checkout)
    assert (run.returncode, "it has no test_spotter.py" in run.stderr) == (2, True)


def test_tests_that_have_passed_are_a_proof_for_a_deploy_and_a_part_of_them_is_none(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    made(checkout, "spotter")
    folder = checkout / "detectors" / "spotter"
    tests = folder / "test_spotter.py"
    tests.write_text("def test_fires():\n    pass\n\n\ndef test_stays_silent():\n    pass\n")
    python = install(folder, tested=False) / "bin" / "python"
    for arguments, proved in ((["--", "-k", "fires or silent"], False), ([], True)):
        run = lozenge("test", "spotter", *arguments, cwd=checkout)
        assert (run.returncode, proof_of(folder, python).exists()) == (0, proved), run.stdout + run.stderr
    tests.write_text(tests.read_text() + "\n\ndef test_more():\n    assert False\n")
    assert not proof_of(folder, python).exists(), "of other tests there is no proof"
    run = lozenge("test", "spotter", cwd=checkout)
    assert (run.returncode, proof_of(folder, python).exists()) == (1, False)


@pytest.mark.parametrize("verb", ["test", "try", "dev", "plan", "deploy"])
def test_every_verb_that_runs_a_folder_first_refuses_what_a_job_could_not_run(checkout: Path, verb: str) -> None:
    made(checkout, "spotter")
    module = checkout / "detectors" / "spotter" / "spotter.py"
    module.write_text(f"from features import LIMIT\n{module.read_text()}")
    (module.parent / "features.py").write_text("LIMIT = 1\n")
    run = invoke(verb, "spotter", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert run.returncode == 2
    assert "spotter.py: line 1: the folder is the package spotter: write `from .features import" in run.stderr
