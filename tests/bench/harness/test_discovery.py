"""A row and a system are one file each, and what a row's goals name is there."""

from tests.bench.harness import row, system
from tests.bench.harness.machine import Load


def test_rows_and_systems_are_found_in_their_folders() -> None:
    assert {"rule-hop", "aggregate-hop", "backlog-rule", "backlog-aggregate", "backlog-fold"} <= row.discovered().keys()
    roles = [each.role for each in system.discovered()]
    assert roles == sorted(roles, key=("ours", "peer", "limit").index)


def test_every_goal_names_a_measure_and_a_system_of_its_row() -> None:
    for each in row.discovered().values():
        there = {s.name for s in system.discovered() if s.fits(each.task.kind, each.method.shape)}
        assert {goal.against for goal in each.goals} <= there
        assert {goal.measure for goal in each.goals} <= {measure.name for measure in each.method.measures}


def test_other_work_and_a_hypervisor_disturb() -> None:
    assert Load(others=0.1, steal=0.0).disturbs == ""
    assert Load(others=0.5, steal=0.0).disturbs == "other work took 0.50 cores (at most 0.15)"
    assert Load(others=0.1, steal=0.2).disturbs == "the hypervisor took 0.20 cores (at most 0.05)"
