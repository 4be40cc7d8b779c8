"""What pytest found of a detector's tests: each one's outcome, read from its report in JUnit's XML."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lozenge_deploy.releases.lint import TELLING

_OUTCOMES = {"failure": "failed", "error": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class Verdict:
    """One test: passed, failed or skipped, in how many seconds; `words` say why it has not passed."""

    test: str
    outcome: str
    seconds: float
    words: str = ""

    @property
    def fault(self) -> str:
        """The fault under which `lozenge.testing.invariants` has tried the detector; "" for a test of its own."""
        return self.test.removeprefix("fault[").removesuffix("]") if self.test.startswith("fault[") else ""


def read(report: Path) -> list[Verdict]:
    """Every test in the report, in the order in which they ran; none if pytest did not get so far."""
    if not report.is_file() or not report.stat().st_size:
        return []
    return [_verdict(case) for case in ElementTree.parse(report).iter("testcase")]


def unproved(verdicts: Sequence[Verdict]) -> list[str]:
    """What a detector owes and no test has shown: a case that fires, one that stays silent. A skipped test is none."""
    passed = [verdict.test for verdict in verdicts if verdict.outcome == "passed"]
    return [kind for kind in TELLING if not any(test.startswith(kind) for test in passed)]


def _verdict(case: ElementTree.Element) -> Verdict:
    told = next((part for part in case if part.tag in _OUTCOMES), None)
    outcome = _OUTCOMES[told.tag] if told is not None else "passed"
    words = (told.get("message") or "") if told is not None else ""
    return Verdict(case.get("name", ""), outcome, float(case.get("time", "0")), words)
