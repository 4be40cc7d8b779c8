"""What an author meets first: new detectors and those of the guides pass their tests; a mistake is named by its fault.

All of them are tested in one process with one Spark, as `lozenge test` does it for one.
"""

import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lozenge.streams.folder import write_copy
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.testing import check
from lozenge.testing.invariants import INVARIANTS
from lozenge_deploy.cli.author import scaffold
from lozenge_deploy.releases.lint.folder import problems
from lozenge_deploy.releases.test_run import test_command as command_of_tests
from tests.deploy.command import ROOT, invoke
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH

pytestmark = pytest.mark.integration

FAULTS = {f"fault[{fault}]" for fault in INVARIANTS}
NEW = {
    "new_rule": ("rule", "terminal"),
    "new_aggregate": ("aggregate", "merchant"),
    "new_stateful": ("stateful", "card"),
}
"""Kind and key of each."""
PACKAGES = {"test_charges": "0.25", "parted": "0.75"}
"""Two detectors of the same modules, with what each finds in its data."""
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
    for name, (kind, key) in NEW.items():
        assert invoke("new", name, "--kind", kind, "--key", key, cwd=checkout).returncode == 0
    _write_that_of_the_guide(detectors)
    _write_that_of_the_tutorial(detectors)
    _write_one_that_reads_the_clock(detectors)
    for name, limit in PACKAGES.items():
        _write_a_package(detectors, name, limit)
    return detectors


@pytest.fixture(scope="module")
def failures(detectors: Path) -> Mapping[str, Mapping[str, str]]:
    """By detector and test, why the test failed; "" if it passed."""
    report = detectors.parent / "report.xml"
    elsewhere = detectors.parent / "elsewhere"
    elsewhere.mkdir()
    (detectors / "pyproject.toml").touch()  # of a folder of detectors, not of one of them
    command = [*command_of_tests(Path(sys.executable), report, elsewhere), "-k", TESTED]
    run = subprocess.run(command, cwd=detectors, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {folder.name: {} for folder in detectors.iterdir() if folder.is_dir()}
    for case in ElementTree.parse(report).iter("testcase"):
        folder, *_ = case.get("classname", "").split(".")
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


@pytest.mark.parametrize("name", PACKAGES)
def test_a_folder_with_modules_and_data_is_a_package_of_its_own(
    name: str, failures: Mapping[str, Mapping[str, str]], detectors: Path
) -> None:
    assert [problem for problem in problems(detectors / name) if "README" not in problem] == []
    assert set(failures[name].values()) == {""}
    assert failures[name].keys() >= {"test_fires_in_a_worker_of_spark", "test_of_the_rules", "test_in_a_folder"}


def test_a_new_detector_of_two_streams_passes_its_tests_and_under_every_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in BY_ACCOUNT.members:
        write_copy(each, tmp_path / "streams")
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path / "streams"))
    scaffold.write(tmp_path, "new_merged", "stateful", "tests", BY_ACCOUNT)
    tests = runpy.run_path(str(tmp_path / "new_merged" / "test_new_merged.py"))
    found = [function for name, function in tests.items() if name.startswith("test_")]
    assert len(found) == 5
    for function in found:
        function()
    first, second = tests["FIRST"], tests["SECOND"]
    assert len(check(tests["detector"], [first, second, first | {"event_id": "later", "at": "9m"}])) == 1


def test_new_detectors_satisfy_ruff(detectors: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B", "--line-length", "120", *NEW]
    assert subprocess.run(command, cwd=detectors).returncode == 0


def _write_a_package(detectors: Path, name: str, limit: str) -> None:
    """A detector of several modules, of which one runs in Spark's workers, with data in a folder.

    Its name and those of its modules may begin as those of tests do.
    """
    scaffold.write(detectors, name, "rule", "you", AUTH)
    folder = detectors / name
    main = (folder / f"{name}.py").read_text("utf-8")
    main = main.replace("\n\n\nclass", "\n\nfrom .lists.known import KNOWN\nfrom .test_rules import risk\n\n\nclass", 1)
    main = main.replace("*alert(", '*alert(score=risk("amount"), title=F.lit(KNOWN), ')
    files = {
        f"{name}.py": main,
        "conftest.py": f"import pytest\n\nfrom {name}.features import LIMIT\n\n"
        "@pytest.fixture\ndef limit():\n    return LIMIT\n",
        "features.py": "import json\nfrom pathlib import Path\n\n"
        'LIMIT = json.loads(Path(__file__).with_name("lists").joinpath("limits ü.json").read_text("utf-8"))\n',
        "test_rules.py": "from pyspark.sql import functions as F\nfrom pyspark.sql.types import DoubleType\n\n"
        "from . import features\n\n\n@F.udf(DoubleType())\ndef risk(amount):\n    return features.LIMIT\n",
        "lists/limits ü.json": limit,
        "lists/known.py": f"from {name}.features import LIMIT\n\nKNOWN = str(LIMIT)\n",
        f"test_{name}.py": "from lozenge.testing import detector_of, run\n\n"
        f"from {name} import features\nfrom .features import LIMIT\n\ndetector = detector_of(__file__)\n\n\n"
        "def test_fires_in_a_worker_of_spark(limit):\n"
        "    [alert] = run(detector, [{'amount': '900'}])\n"
        f"    assert (alert.score, alert.title) == (LIMIT, str(features.LIMIT)) == ({limit}, str(limit))\n\n\n"
        "def test_stays_silent():\n    assert run(detector, [{'amount': '1'}]) == []\n\n\n"
        "def test_a_missing_amount():\n    assert run(detector, [{'amount': None}]) == []\n\n\n"
        "def test_of_the_rules():\n    assert LIMIT == features.LIMIT\n",
        "tests/test_more.py": "from lozenge.testing import detector_of\n\n\n"
        f"def test_in_a_folder(limit):\n    assert detector_of(__file__).name == '{name}' and limit == {limit}\n",
    }
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, "utf-8")


def _write_that_of_the_guide(detectors: Path) -> None:
    guide = (ROOT / "detectors" / "README.md").read_text("utf-8")
    blocks = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", guide, re.DOTALL)
    assert {name for name, _ in blocks} == {"night_cash.py", "pyproject.toml", "test_night_cash.py"}
    (detectors / "night_cash").mkdir()
    for name, text in blocks:
        (detectors / "night_cash" / name).write_text(text, "utf-8")


def _write_that_of_the_tutorial(detectors: Path) -> None:
    scaffold.write(detectors, "big_cash", "rule", "you", AUTH)
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
    scaffold.write(detectors, "wrong_clock", "rule", "you", AUTH)
    module = detectors / "wrong_clock" / "wrong_clock.py"
    module.write_text(module.read_text().replace('"card_id"', "F.current_timestamp().cast('string')"))
    (detectors / "wrong_clock" / "test_wrong_clock.py").write_text(OF_WRONG_CLOCK)
