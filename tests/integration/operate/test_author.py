"""What an author meets first: the folder of a new detector, its tests, and the faults that they are run under."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lozenge.testing.invariants import INVARIANTS
from lozenge_deploy.releases import test_report
from lozenge_deploy.releases.detector_process import test_command as command_of_tests
from tests.deploy.command import lozenge

pytestmark = pytest.mark.integration

FAULTS = [f"fault[{fault}]" for fault in INVARIANTS]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "detectors").mkdir()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def test_the_tests_of_a_new_rule_pass_at_once(checkout: Path) -> None:
    assert lozenge("new", "spotter", cwd=checkout).returncode == 0
    assert lozenge("check", "spotter", cwd=checkout).returncode == 0
    run = lozenge("test", "spotter", "-o", "json", cwd=checkout)
    assert run.returncode == 0, run.stdout + run.stderr
    outcomes = {verdict["test"]: verdict["outcome"] for verdict in json.loads(run.stdout)}
    assert set(outcomes.values()) == {"passed"}
    assert set(FAULTS) < outcomes.keys()


def test_the_tests_of_new_detectors_of_the_other_kinds_pass_at_once_in_one_process(checkout: Path) -> None:
    for kind in ("aggregate", "stateful"):
        assert lozenge("new", f"spotter_{kind}", "--kind", kind, cwd=checkout).returncode == 0
        assert lozenge("check", f"spotter_{kind}", cwd=checkout).returncode == 0
    report = checkout / "report.xml"
    command = command_of_tests(Path(sys.executable), report)
    run = subprocess.run(command, cwd=checkout / "detectors", capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    found = test_report.read(report)
    assert {verdict.outcome for verdict in found} == {"passed"}
    assert Counter(verdict.test for verdict in found if verdict.fault) == dict.fromkeys(FAULTS, 2)


def test_new_detectors_of_all_kinds_satisfy_ruff(checkout: Path) -> None:
    for kind in ("rule", "aggregate", "stateful"):
        assert lozenge("new", f"spotter_{kind}", "--kind", kind, cwd=checkout).returncode == 0
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B", "--line-length", "120", "."]
    assert subprocess.run(command, cwd=checkout / "detectors").returncode == 0


def test_a_detector_that_breaks_an_invariant_ends_with_1_and_a_line_for_each_fault(checkout: Path) -> None:
    lozenge("new", "spotter", cwd=checkout)
    folder = checkout / "detectors" / "spotter"
    code = (folder / "spotter.py").read_text()
    (folder / "spotter.py").write_text(code.replace('"merchant_id"', "F.current_timestamp().cast('string')"))
    test = "def test_fires() -> None:\n    assert run(detector, [{'amount': '900'}])\n"
    (folder / "test_spotter.py").write_text(
        f"from lozenge.testing import detector_of, run\n\ndetector = detector_of(__file__)\n\n\n{test}"
    )
    run = lozenge("test", "spotter", cwd=checkout)
    assert run.returncode == 1
    assert "testing spotter: its tests fail" in run.stderr
    lines = {words[0]: " ".join(words[1:]) for line in run.stdout.splitlines() if (words := line.split())}
    assert lines["replayed"].startswith("failed")
    assert lines["replayed"].endswith("with another reason")
    assert lines["null_fields"].startswith("passed")
