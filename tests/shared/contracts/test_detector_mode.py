"""What is asked of a mode, instead of comparing it."""

import ast
from pathlib import Path

from lozenge import job
from lozenge.contracts.detector_mode import DetectorMode

CHOOSE_A_DRIVER, CHECK_A_PLAN = {"job_factory"}, {"query_builder", "describe"}


def test_alerts_of_real_time_mode_alone_are_ahead_of_their_offsets_and_its_tasks_alone_do_not_end() -> None:
    assert [mode for mode in DetectorMode if mode.published_ahead] == [DetectorMode.REALTIME]
    assert [mode for mode in DetectorMode if mode.holds_slots] == [DetectorMode.REALTIME]


def test_a_job_compares_modes_only_where_it_chooses_a_driver_or_checks_a_plan() -> None:
    modules = list(Path(job.__path__[0]).rglob("*.py"))
    comparing = {
        module.stem
        for module in modules
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in {"realtime", "REALTIME", "MICRO_BATCH"})
        or (
            isinstance(node, ast.Compare)
            and any("mode" in ast.unparse(each) for each in (node.left, *node.comparators))
        )
    }
    assert modules
    assert comparing == CHOOSE_A_DRIVER | CHECK_A_PLAN
