"""The description of a detector: from a process of its own, and where Spark runs already."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lozenge.detector.loader import from_folder
from lozenge.errors import DetectorError
from lozenge.job.tools.describe import describe as described
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases.build import CHECKOUT
from tests.plugins.warm_host import hosts_of_the_run
from tests.streams import AUTH

pytestmark = pytest.mark.integration


def describe(detector: str | Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lozenge.job.tools.describe", str(CHECKOUT / "detectors" / detector), *more]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)


def parsed(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert run.returncode == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def test_a_fold_describes_its_state() -> None:
    answer = parsed(describe("duplicate_charge"))
    assert answer["declaration"]["kind"] == "stateful"
    assert answer["state_shape"] == {
        "by": ["card_id", "merchant_id", "amount", "currency"],
        "expires": "10m",
        "fields": {"at": ["datetime", "none"], "event_id": ["str", "none"]},
        "required": [],
    }
    assert answer["settings"] == {"within": "10m"}
    assert answer["settings_schema"]["properties"]["within"]["default"] == "10m"
    assert answer["schemas"]


@pytest.mark.parametrize("name", ["large_amount", "card_velocity"])
def test_a_rule_and_an_aggregate_are_described_without_java(name: str) -> None:
    answer = parsed(describe(name, JAVA_HOME="/nowhere", PATH="/nowhere"))
    assert answer["detector"] == name
    assert answer["state_shape"] is None


def test_settings_can_be_tried_before_they_are_set() -> None:
    before = parsed(describe("card_velocity"))
    with hosts_of_the_run():
        after = parsed(describe("card_velocity", "--settings", '{"window": "20m"}'))
        again = parsed(describe("card_velocity", "--settings", json.dumps(before["settings"])))
        refused = describe("card_velocity", "--settings", '{"window": "0s"}')
    assert after["settings"] == before["settings"] | {"window": "20m"}
    assert after["settings_digest"] != before["settings_digest"]
    assert (again["settings_digest"], again["unplanned"]) == (before["settings_digest"], "")
    assert (refused.returncode, "planning card_velocity: detect() raised" in refused.stderr) == (1, True)


@pytest.mark.parametrize("overrides", ['{"window": "soon", "no": 1}', "nothing"])
def test_every_problem_of_the_settings_is_reported(overrides: str) -> None:
    run = describe("card_velocity", "--settings", overrides)
    assert run.returncode == 2
    assert not run.stdout
    assert ("window: " in run.stderr and "no: " in run.stderr) or "not JSON" in run.stderr


def test_output_of_the_module_is_not_part_of_the_description(tmp_path: Path) -> None:
    folder = tmp_path / "large_amount"
    folder.mkdir()
    for file in ("large_amount.py", "pyproject.toml"):
        text = (CHECKOUT / "detectors" / "large_amount" / file).read_text()
        (folder / file).write_text(text + ("\nprint('hello')\n" if file.endswith(".py") else ""))
    assert parsed(describe(folder))["version"] == "1.0.0"


def test_a_fold_that_cannot_be_planned_says_why(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "duplicate_charge"
    folder.mkdir()
    for file in ("duplicate_charge.py", "pyproject.toml"):
        text = (CHECKOUT / "detectors" / "duplicate_charge" / file).read_text()
        (folder / file).write_text(text.replace('F.col("auth_result")', 'events["colour"]'))
    with pytest.raises(DetectorError, match=r"planning duplicate_charge: detect\(\) raised AnalysisException"):
        described(from_folder(folder))


@pytest.mark.parametrize(
    ("code", "operator", "hint"),
    [
        (
            "rows(F.udf(lambda text: text, 'string')(F.col('mcc')))",
            "ArrowEvalPython",
            "write it with column expressions",
        ),
        ("rows(F.lit('one')).union(rows(F.lit('other')))", "Union", "in one where"),
        ("rows(F.col('mcc'))", "", ""),
    ],
)
def test_what_cannot_run_in_real_time_mode_is_refused_with_its_operator(
    spark: SparkSession, tmp_path: Path, code: str, operator: str, hint: str
) -> None:
    folder = tmp_path / "quick"
    write(tmp_path, "quick", "rule", "tests", AUTH)
    project, module = folder / "pyproject.toml", folder / "quick.py"
    project.write_text(project.read_text("utf-8") + '\nmode = "realtime"\n', "utf-8")
    lines = (
        "def detect(events, settings, tables):",
        "    rows = lambda reason: events.select(*alert(reason=reason))",
        f"    return {code}",
        "detector = Detector(detect, settings=Quick)",
    )
    module.write_text("\n".join([module.read_text("utf-8"), *lines]), "utf-8")
    loaded = from_folder(folder)
    if not operator:
        assert described(loaded).declaration.realtime
        return
    with pytest.raises(DetectorError, match=operator) as refused:
        described(loaded)
    assert hint in str(refused.value)
