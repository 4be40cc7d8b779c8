"""Systems take turns; the machine must be quiet; what is void or disturbed makes no pair."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness import rounds
from tests.bench.harness.report import verdict
from tests.bench.harness.rounds import Disturbed, Outcome, run
from tests.bench.harness.row import START_SECONDS, Cell, Measure, Method, Plan, Row, Visit
from tests.bench.harness.running import Dead
from tests.bench.harness.system import Guarantees, Role, System, Unavailable
from tests.bench.harness.workload import Task

PLAN = Plan(rounds=5, minutes=1, rates=(100,), events=1000)


def system(name: str, role: Role = "peer") -> System:
    return System(name, role, Guarantees("none", "never"))


OURS, PEER = system("ours", "ours"), system("peer")


def row(measure: Callable[[Visit], Iterator[Cell]]) -> Row:
    return Row("r", "a row", Method("hop", (Measure("p50", "ms"),), measure, lambda *_: 60.0), Task("rule"))


def latencies(visit: Visit) -> Iterator[Cell]:
    yield Cell(visit.system.name, visit.round, "100/s", {"p50": 2.0 * visit.round if visit.system is OURS else 1.0})


def measured(measure: Callable[[Visit], Iterator[Cell]], *, anyway: bool = False) -> Outcome:
    outcome = Outcome(row(measure), PLAN, [OURS, PEER], anyway)
    run(outcome, KafkaSettings(), Path(), lambda _: None)
    return outcome


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "await_quiet", lambda watch, patience: "")


def test_systems_take_turns_and_pairs_are_of_one_round() -> None:
    outcome = measured(latencies)
    assert [cell.system for cell in outcome.cells] == ["ours", "peer"] * 5
    [(ours, other, found)] = outcome.ratios("100/s", "p50")
    assert (ours, other) == (OURS, PEER)
    assert (found.median, found.low, found.high, found.pairs) == (6.0, 2.0, 10.0, 5)
    assert verdict(outcome) == "scored, with at least 5 pairs a ratio"


def test_nothing_is_measured_while_other_work_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "await_quiet", lambda watch, patience: "other work took 1.20 cores")
    with pytest.raises(Disturbed, match=r"1\.20 cores"):
        measured(latencies)
    assert verdict(measured(latencies, anyway=True)).startswith("NOT SCORED: other work was allowed")


def test_what_is_void_or_was_disturbed_makes_no_pair_and_too_few_pairs_are_not_scored() -> None:
    def troubled(visit: Visit) -> Iterator[Cell]:
        [cell] = latencies(visit)
        void = "1 missing" if (visit.system.name, visit.round) == ("peer", 2) else ""
        disturbed = "other work took 0.50 cores" if (visit.system.name, visit.round) == ("ours", 4) else ""
        yield Cell(cell.system, cell.round, cell.point, cell.values, void, disturbed)

    outcome = measured(troubled)
    [(_, _, found)] = outcome.ratios("100/s", "p50")
    assert found.pairs == 3
    assert verdict(outcome) == "NOT SCORED: a ratio needs 5 sound and undisturbed pairs; 1 of 10 measurements void"
    [(_, _, found)] = measured(troubled, anyway=True).ratios("100/s", "p50")
    assert found.pairs == 4


def test_a_system_that_dies_is_void_and_one_that_cannot_run_is_absent() -> None:
    def failing(visit: Visit) -> Iterator[Cell]:
        if visit.system is PEER:
            raise Unavailable("it needs a JDK")
        yield from latencies(visit)
        raise Dead("ended with 1")

    outcome = measured(failing)
    assert outcome.absent == {"peer": "it needs a JDK"}
    assert [cell.void for cell in outcome.cells] == ["", "ended with 1"] * 5


def test_the_time_of_a_row_is_divided_among_its_visits() -> None:
    plan = Plan(rounds=5, minutes=30, rates=(300, 1000, 5000), events=0)
    assert 5 * 6 * (plan.seconds(6) * 3 + START_SECONDS) == pytest.approx(30 * 60)
    assert (plan.seconds(100), replace(plan, rounds=1, minutes=60).seconds(1)) == (10, 600)
