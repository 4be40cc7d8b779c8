"""What an author meets first: new detectors and those of the guides pass their tests; a mistake is named by its fault.

All of them are tested in one process with one Spark, as `lozenge test` does it for one.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lozenge.testing.invariants import INVARIANTS
from lozenge_deploy.cli.author import scaffold
from lozenge_deploy.releases.detector_process import test_command as command_of_tests
from tests.deploy.command import ROOT, invoke

pytestmark = pytest.mark.integration

FAULTS = {f"fault[{fault}]" for fault in INVARIANTS}
NEW = {"new_rule": "rule", "new_aggregate": "aggregate", "new_stateful": "stateful"}
TESTED = "not fault or new_ or (wrong_clock and replayed)"
"""The expression for pytest that skips faults which prove nothing more."""
OF_WRONG_CLOCK = """
from lozenge.testing import detector_of, run

detector = detector_of(__file__)


def test_fires() -> None:
    assert run(detector, [{"amount": "900"}])
"""


@pytest.fixture(scope="module")
def detectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout's folder of detectors."""
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "pyproject.toml").touch()
    detectors = checkout / "detectors"
    detectors.mkdir()
    for name, kind in NEW.items():
        assert invoke("new", name, "--kind", kind, cwd=checkout).returncode == 0
    _write_that_of_the_guide(detectors)
    _write_that_of_the_tutorial(detectors)
    _write_one_that_reads_the_clock(detectors)
    return detectors


@pytest.fixture(scope="module")
def failures(detectors: Path) -> Mapping[str, Mapping[str, str]]:
    """By detector and test, why the test failed; "" if it passed."""
    report = detectors.parent / "report.xml"
    command = [*command_of_tests(Path(sys.executable), report), "-k", TESTED]
    run = subprocess.run(command, cwd=detectors, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {folder.name: {} for folder in detectors.iterdir()}
    for case in ElementTree.parse(report).iter("testcase"):
        _, folder, _ = case.get("classname", "").split(".")
        found[folder][case.get("name", "")] = "; ".join(part.get("message", part.tag) for part in case)
    return found


@pytest.mark.parametrize("name", NEW)
def test_the_tests_of_a_new_detector_pass_at_once_under_every_fault(
    name: str, failures: Mapping[str, Mapping[str, str]], detectors: Path
) -> None:
    assert invoke("check", name, cwd=detectors.parent).returncode == 0
    assert set(failures[name].values()) == {""}
    assert failures[name].keys() > FAULTS


@pytest.mark.parametrize(("name", "tests"), [("night_cash", 2), ("big_cash", 3)], ids=["guide", "tutorial"])
def test_the_tests_of_a_detector_from_the_documents_pass(
    name: str, tests: int, failures: Mapping[str, Mapping[str, str]]
) -> None:
    assert list(failures[name].values()) == [""] * tests


def test_a_detector_that_breaks_an_invariant_fails_under_its_fault(
    failures: Mapping[str, Mapping[str, str]],
) -> None:
    assert failures["wrong_clock"]["test_fires"] == ""
    assert "1 with another reason" in failures["wrong_clock"]["fault[replayed]"]


def test_new_detectors_satisfy_ruff(detectors: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B", "--line-length", "120", *NEW]
    assert subprocess.run(command, cwd=detectors).returncode == 0


def _write_that_of_the_guide(detectors: Path) -> None:
    guide = (ROOT / "detectors" / "README.md").read_text("utf-8")
    blocks = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", guide, re.DOTALL)
    assert {name for name, _ in blocks} == {"night_cash.py", "pyproject.toml", "test_night_cash.py"}
    (detectors / "night_cash").mkdir()
    for name, text in blocks:
        (detectors / "night_cash" / name).write_text(text, "utf-8")


def _write_that_of_the_tutorial(detectors: Path) -> None:
    scaffold.write(detectors, "big_cash", "rule", "you")
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    blocks = re.findall(r"<!-- edit: (\S+) -->\n```diff\n(.*?)```", tutorial, re.DOTALL)
    assert [name for name, _ in blocks] == ["big_cash.py", "test_big_cash.py"]
    for name, diff in blocks:
        file = detectors / "big_cash" / name
        file.write_text(_edited(file.read_text("utf-8"), diff), "utf-8")


def _edited(text: str, diff: str) -> str:
    """Each run of lines with "-" replaced by the run of lines with "+" after it."""
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
        before, after = (re.sub(r"^.", "", lines, flags=re.MULTILINE) for lines in (old, new))
        assert text.count(before) == 1, f"docs/tutorial.md edits lines that `lozenge new` does not write:\n{before}"
        text = text.replace(before, after)
    return text


def _write_one_that_reads_the_clock(detectors: Path) -> None:
    scaffold.write(detectors, "wrong_clock", "rule", "you")
    module = detectors / "wrong_clock" / "wrong_clock.py"
    module.write_text(module.read_text().replace('"merchant_id"', "F.current_timestamp().cast('string')"))
    (detectors / "wrong_clock" / "test_wrong_clock.py").write_text(OF_WRONG_CLOCK)
