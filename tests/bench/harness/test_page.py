"""The page is self-contained and well formed; each ratio has its name, its range and its goal."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console

from tests.bench.harness.page import html, write
from tests.bench.harness.report import Report, show
from tests.bench.harness.rounds import Outcome
from tests.bench.harness.row import Cell, Goal, Measure, Method, Plan, Row
from tests.bench.harness.statistics import curve
from tests.bench.harness.system import Guarantees, System
from tests.bench.harness.workload import Task

PLAN = Plan(rounds=5, minutes=1, rates=(100,), events=1000)
OURS = System("ours <1>", "ours", Guarantees("exactly once", "every batch"))
PEER = System("peer", "peer", Guarantees("at least once", "every 30 s"))
ROW = Row(
    name="r",
    title="a row",
    method=Method("hop", (Measure("p50", "ms"),), measure=lambda _: iter(()), seconds=lambda *_: 60.0),
    task=Task("rule"),
    goals=(Goal("p50", "peer", 4.0, 2.0),),
)


def outcome(factor: float = 3.0) -> Outcome:
    found = Outcome(ROW, PLAN, [OURS, PEER], anyway=False, absent={"other": "not <known>"})
    for number in range(1, 6):
        found.cells.append(Cell(OURS.name, number, "100/s", {"p50": factor * number}, curve=curve([factor, 9.0])))
        found.cells.append(Cell(PEER.name, number, "100/s", {"p50": 1.0 * number}, curve=curve([1.0, 4.0])))
    return found


def report(*outcomes: Outcome) -> Report:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    return Report(at, ["r", "--only", "ours <1>"], PLAN, False, list(outcomes), {"cores": 2})


def test_the_page_is_self_contained_and_well_formed() -> None:
    page = html(report(outcome()))
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert "ours &lt;1&gt;" in page
    assert "not &lt;known&gt;" in page
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 2  # the ratios, and the distributions
    for plot in plots:
        ElementTree.fromstring(plot)
    assert 'class="bar"' in plots[0]
    assert 'class="stretch"' in plots[0]


def test_a_ratio_is_held_against_its_goal() -> None:
    for factor, mark in ((5.0, "MISSED"), (3.0, "bar"), (2.0, "stretch goal")):
        [ratio] = report(outcome(factor)).as_json()["rows"][0]["ratios"]
        assert ratio["mark"] == mark
        assert ratio["ratio"] == {"median": factor, "low": factor, "high": factor, "pairs": 5}


def test_the_terminal_says_the_same() -> None:
    output = StringIO()
    show(outcome(), Console(file=output, width=160))
    assert "3.00 (3.00 to 3.00)" in output.getvalue()
    assert "4, 2: bar" in output.getvalue()
    assert "not here: other: not <known>" in output.getvalue()
    assert "scored, with at least 5 pairs a ratio" in output.getvalue()


def test_a_run_leaves_one_json_and_one_page(tmp_path: Path) -> None:
    page = write(report(outcome(), replace(outcome(), anyway=True)), tmp_path)
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".html"}
    written = json.loads(page.with_suffix(".json").read_text())
    assert [row["verdict"] for row in written["rows"]] == [
        "scored, with at least 5 pairs a ratio",
        "NOT SCORED: other work was allowed on the machine",
    ]
    assert written["rows"][0]["systems"][0]["processing"] == "exactly once"
    assert written["arguments"] == ["r", "--only", "ours <1>"]


def test_what_was_asked_is_on_the_page() -> None:
    assert "r --only &#x27;ours &lt;1&gt;&#x27;" in html(report(outcome()))
