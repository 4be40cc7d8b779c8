"""The outcomes of a detector's tests, from pytest's report in JUnit XML."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lozenge_deploy.releases.lint.documents import REQUIRED_TESTS

_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class ReportedTest:
    """One test: passed, failed or skipped, in how many seconds; `reason` says why it has not passed."""

    test: str
    outcome: str
    seconds: float
    reason: str = ""

    @property
    def fault(self) -> str:
        """The fault under which `lozenge.testing.invariants` has tried the detector; "" for a test of its own."""
        return self.test.removeprefix("fault[").removesuffix("]") if self.test.startswith("fault[") else ""


def read(report: Path) -> list[ReportedTest]:
    """Every test in the report, in the order in which they ran; none if pytest did not get so far."""
    if not report.is_file() or not report.stat().st_size:
        return []
    return [_outcome_of(case) for case in ElementTree.parse(report).iter("testcase")]


def unproved(outcomes: Sequence[ReportedTest]) -> list[str]:
    """What a detector owes and no test has shown: a case that fires, one that stays silent. A skipped test is none."""
    passed = [each.test for each in outcomes if each.outcome == "passed"]
    return [kind for kind in REQUIRED_TESTS if not any(test.startswith(kind) for test in passed)]


def _outcome_of(case: ElementTree.Element) -> ReportedTest:
    problem = next((part for part in case if part.tag in _OUTCOMES), None)
    outcome = _OUTCOMES[problem.tag] if problem is not None else "passed"
    reason = (problem.get("message") or "") if problem is not None else ""
    return ReportedTest(case.get("name", ""), outcome, float(case.get("time", "0")), reason)
