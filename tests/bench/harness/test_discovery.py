"""A row and a system are one file each, what a row's goals name is there, and a row has its time."""

import pytest

from tests.bench.harness import row, system
from tests.bench.harness.machine import Load
from tests.bench.harness.row import FULL, QUICK, Plan, Row

ROWS, SYSTEMS = row.discovered(), system.discovered()


def planned(each: Row, plan: Plan) -> float:
    """Minutes, of the systems that take part by default."""
    return each.minutes(each.plan_of(plan), [s for s in SYSTEMS if each.needs(s)])


def test_rows_and_systems_are_found_in_their_folders() -> None:
    assert {"rule-hop", "aggregate-hop", "backlog-rule", "backlog-aggregate", "backlog-fold"} <= ROWS.keys()
    roles = [each.role for each in SYSTEMS]
    assert roles == sorted(roles, key=("ours", "peer", "limit").index)


@pytest.mark.parametrize("each", ROWS.values(), ids=ROWS.keys())
def test_what_a_goal_names_takes_part_with_one_of_ours_and_a_peer(each: Row) -> None:
    there = [s for s in SYSTEMS if each.needs(s)]
    assert {goal.against for goal in each.goals} <= {s.name for s in there}
    assert {goal.measure for goal in each.goals} <= {measure.name for measure in each.method.measures}
    assert {"ours", "peer"} <= {s.role for s in there}


@pytest.mark.parametrize("name", ["rule-hop", "aggregate-hop"])
def test_hops_are_measured_in_real_time_with_the_usual_commits(name: str) -> None:
    ours = [s.name for s in SYSTEMS if s.role == "ours" and ROWS[name].needs(s)]
    assert ours == ["Lozenge, realtime, commit 1 m"]


def test_no_fold_is_measured_in_real_time() -> None:
    assert not [s.name for s in SYSTEMS if ROWS["backlog-fold"].fits(s) and "realtime" in s.name]


@pytest.mark.parametrize("each", ROWS.values(), ids=ROWS.keys())
def test_a_row_takes_half_an_hour_at_most(each: Row) -> None:
    assert planned(each, FULL) <= 30.001


def test_the_rough_table_takes_about_ten_minutes() -> None:
    assert sum(planned(each, QUICK) for each in ROWS.values() if each.quick) <= 10.0


def test_what_counts_of_an_aggregates_hop_is_a_minute_so_a_commit_is_in_it() -> None:
    those = [s for s in SYSTEMS if ROWS["aggregate-hop"].needs(s)]
    assert ROWS["aggregate-hop"].plan_of(FULL).seconds(len(those)) * 0.5 >= 60


def test_other_work_and_a_hypervisor_disturb() -> None:
    assert Load(others=0.1, steal=0.0).disturbs == ""
    assert Load(others=0.5, steal=0.0).disturbs == "other work took 0.50 cores (at most 0.15)"
    assert Load(others=0.1, steal=0.2).disturbs == "the hypervisor took 0.20 cores (at most 0.05)"
