"""How a job comes to process: claims, warm-up, cut-over, new configurations; the query and the log are scripted."""

from pathlib import Path

import pytest

from lozenge.errors import DetectorError
from lozenge.job.drivers.driver import Admission
from lozenge.job.lifecycle.job_state import JobEvent, JobState
from lozenge.protocol.job_status import JobPhase
from tests.shared.job.lifecycle.reaching import (
    cutting_over,
    fail,
    live,
    made_live,
    new_settings,
    paused,
    ready,
    shared,
    state_of,
    unassigned,
    waiting,
)
from tests.shared.job.lifecycle.scripted import alert

pytestmark = pytest.mark.usefixtures("no_waiting")

S, E = JobState, JobEvent


def test_settings_that_come_with_the_cut_over_hold_after_it(tmp_path: Path) -> None:
    job = ready(tmp_path)
    job.plan_batch(0, 10, 10)
    job.write_spec(generation=2, settings={"limit": 5})
    job.advance()
    assert state_of(job) is S.CUTTING_OVER
    job.advance()
    assert state_of(job) is S.CUTTING_OVER, "a cut-over is not interrupted"
    job.end_batch(0, 10, 10)
    job.advance()
    assert state_of(job) is S.REPLANNING


def test_a_cut_over_publishes_exactly_what_the_replaced_job_has_not_committed(tmp_path: Path) -> None:
    job = ready(tmp_path)
    job.batch(0, 10, 10, alerts=[alert(0, 3), alert(0, 8), alert(1, 2)])
    job.claims.committed_meanwhile = {0: 5, 1: 5}
    made_live(job)
    assert state_of(job) is S.LIVE
    assert job.log.offsets == {0: 10, 1: 10}
    assert len(job.log.records) == 1
    status = job.parts.reporter.status
    assert (status.phase, status.generation, status.since) == (JobPhase.LIVE, 2, {0: 5, 1: 5})


def test_a_cut_over_waits_for_the_batch_under_way(tmp_path: Path) -> None:
    job = ready(tmp_path)
    job.plan_batch(0, 10, 10)
    made_live(job)
    assert (job.state, job.log.transactions) == (S.CUTTING_OVER, 0)
    job.end_batch(0, 10, 10, alerts=[alert(0, 3)])
    assert (job.state, len(job.log.records)) == (S.LIVE, 1)


def test_a_cut_over_waits_until_the_query_has_read_what_the_replaced_job_has_committed(tmp_path: Path) -> None:
    job = ready(tmp_path)
    job.batch(0, 10, 10, alerts=[alert(0, 3)])
    job.log.offsets = {0: 12, 1: 10}
    made_live(job)
    assert (job.state, job.log.transactions) == (S.CUTTING_OVER, 0)
    job.batch(1, 15, 10, alerts=[alert(0, 11), alert(0, 13)])
    assert (job.state, job.log.offsets, len(job.log.records)) == (S.LIVE, {0: 15, 1: 10}, 1)


def test_a_query_that_fails_between_claim_and_first_transaction_restarts_at_the_claimed_offsets(tmp_path: Path) -> None:
    job = cutting_over(tmp_path)
    job.log.offsets = {0: 7, 1: 7}
    fail(job)
    assert (job.state, job.claims.claims) == (S.LIVE, [None])
    assert job.planner.adopted[-1] is None
    assert job.parts.reporter.status.since == {0: 0, 1: 0}


def test_a_rebuilt_state_does_not_survive_a_query_that_fails_at_the_cut_over(tmp_path: Path) -> None:
    job = cutting_over(tmp_path, kind="stateful")
    job.planner.policy = "rebuild"
    with pytest.raises(DetectorError, match="before the standby output was published"):
        fail(job)


def test_new_settings_hold_from_a_batch_boundary_on_with_the_state_of_the_operator(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.batch(0, 4, 4)
    assert job.current.run is not None
    operator = job.current.run.operator
    job.driver.at_boundary = False
    job.plan_batch(1, 8, 8)
    new_settings(job)
    assert state_of(job) is S.REPLANNING
    job.end_batch(1, 8, 8)
    assert job.log.offsets == {0: 8, 1: 8}
    assert job.plan_batch(2, 9, 9).answer.result(0) is Admission.ABANDON
    job.driver.at_boundary = True
    job.advance()
    assert (job.state, job.planner.adopted[-1]) == (S.LIVE, operator)
    assert job.planner.config is not None
    assert job.planner.config.settings.model_dump() == {"limit": 7.0}
    assert job.parts.reporter.status.since == {0: 8, 1: 8}


def test_new_tables_plan_the_query_again(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.planner.tables.newest = "2"
    job.advance()
    assert state_of(job) is S.REPLANNING
    job.advance()
    assert (job.state, job.planner.planned) == (S.LIVE, 2)
    status = job.parts.reporter.status
    assert (status.tables, status.since) == ({"limits": "2"}, dict(job.log.offsets)), "the change and where it begins"


def test_a_warm_standby_without_a_query_starts_when_it_is_made_live(tmp_path: Path) -> None:
    job = waiting(tmp_path)
    assert job.driver.warmed_up
    assert (job.driver.plan, job.claims.claims) == (None, [])
    assert job.parts.reporter.status.phase is JobPhase.READY
    made_live(job)
    assert (job.state, job.claims.claims) == (S.LIVE, [None])
    assert job.parts.reporter.status.generation == 2


def test_an_instance_claims_the_partitions_that_it_is_assigned(tmp_path: Path) -> None:
    job = unassigned(tmp_path)
    assert (job.claims.claims, job.parts.reporter.status.phase) == ([], JobPhase.LIVE)
    job.assignment.partitions = frozenset({1})
    job.advance()
    assert (job.state, job.claims.claims) == (S.LIVE, [{1}])
    job.assignment.partitions = frozenset({0, 1})
    job.advance()
    job.advance()
    assert (job.state, job.claims.claims) == (S.LIVE, [{1}, {0, 1}])
    assert job.planner.adopted[-1] is None, "its state is of other partitions"
    job.assignment.partitions = frozenset()
    job.advance()
    job.advance()
    assert (job.state, job.driver.plan) == (S.UNASSIGNED, None)


def test_an_instance_that_is_to_be_the_only_one_claims_all_partitions(tmp_path: Path) -> None:
    job = shared(tmp_path)
    job.write_spec(generation=2)
    job.advance()
    job.advance()
    assert (job.state, job.claims.claims) == (S.LIVE, [{1}, None])


def test_new_settings_close_the_circuit_at_once(tmp_path: Path) -> None:
    job = paused(tmp_path)
    new_settings(job)
    assert (job.state, job.circuit_open) == (S.LIVE, "")
