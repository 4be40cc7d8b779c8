"""A job through its states, with a scripted query and log: every transition, and what each guarantees."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lozenge.errors import DetectorError, Fenced, Flood
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers.driver import Admission, AlertsDrafted, BatchPlanned, BatchProcessed, QueryFailed, TriggerEnded
from lozenge.job.lifecycle import job_watch
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_state import TRANSITIONS, JobEvent, JobState
from lozenge.job.lifecycle.outputs import REFRESH_SECONDS, LiveOutput
from lozenge.process.shutdown import STOP_SECONDS
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.job_status import JobPhase
from tests.shared.job.lifecycle.scripted import Log, ScriptedJob, ScriptedOperator, alert

S, E = JobState, JobEvent
FLOOD = Flood("too many records fail", hint="fix the detector")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STANDBY_POLL_SECONDS", "READINESS_POLL_SECONDS", "TABLE_POLL_SECONDS"):
        monkeypatch.setattr(job_watch, name, 0.0)
    monkeypatch.setattr(job_watch, "POLL_SECONDS", {})


def state_of(job: ScriptedJob) -> JobState:
    """A call, so that a type checker expects that it changes."""
    return job.state


def live(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, **more).begin()


def standby(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, standby=True, **more).begin()


def ready(folder: Path, **more: Any) -> ScriptedJob:
    job = standby(folder, **more)
    job.driver.warm = True
    job.advance()
    return job


def cutting_over(folder: Path, **more: Any) -> ScriptedJob:
    """With a batch under way."""
    job = ready(folder, **more)
    job.plan_batch(0, 10, 10)
    job.write_spec(generation=2)
    job.advance()
    return job


def replanning(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.driver.at_boundary = False
    job.write_spec(settings={"limit": 5})
    job.advance()
    return job


def stopping(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.driver.at_boundary = False
    job.stop()
    job.advance()
    return job


def paused(folder: Path, **more: Any) -> ScriptedJob:
    job = live(folder, **more)
    job.recovery.raises = FLOOD
    fail(job)
    job.recovery.raises = None
    return job


def waiting(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, standby_driver=False, standby=True, **more).begin()


def unassigned(folder: Path, **more: Any) -> ScriptedJob:
    return ScriptedJob(folder, shared=True, **more).begin()


def shared(folder: Path, **more: Any) -> ScriptedJob:
    job = unassigned(folder, **more)
    job.assignment.partitions = frozenset({1})
    job.advance()
    return job


def fail(job: ScriptedJob, error: Exception | None = None) -> None:
    assert job.progress.run is not None
    ends = dict.fromkeys(job.progress.run.read, 10)
    job.driver.events.append(QueryFailed(error or ValueError("broken"), 0, ends))
    job.advance()


def flood(job: ScriptedJob) -> None:
    job.recovery.raises = FLOOD
    fail(job)


def stop(job: ScriptedJob) -> None:
    job.stop()
    job.advance()


def plan(job: ScriptedJob) -> None:
    job.plan_batch(0, 10, 10)


def end(job: ScriptedJob) -> None:
    job.end_batch(0, 10, 10)


def draft(job: ScriptedJob) -> None:
    job.driver.events.append(AlertsDrafted([alert(0, 1)]))
    job.advance()


def new_spec(job: ScriptedJob) -> None:
    spec = job.parts.specs.spec
    job.write_spec(**(spec.model_dump() | {"revision": "next"}))
    job.advance()


def new_settings(job: ScriptedJob) -> None:
    spec = job.parts.specs.spec
    job.write_spec(**(spec.model_dump() | {"settings": {"limit": 7}}))
    job.advance()


def made_live(job: ScriptedJob) -> None:
    job.write_spec(generation=2)
    job.advance()


def assign(job: ScriptedJob) -> None:
    job.assignment.partitions = frozenset({0})
    job.advance()


def boundary(job: ScriptedJob) -> None:
    job.driver.at_boundary = True
    job.advance()


def warm(job: ScriptedJob) -> None:
    job.driver.warm = True
    job.advance()


def begin(job: ScriptedJob) -> None:
    job.begin()


def retry(job: ScriptedJob) -> None:
    job._watch._entered -= RETRY_INTERVAL_SECONDS
    job.advance()


def nothing(job: ScriptedJob) -> None:
    """It has happened on the way."""


def starting(folder: Path) -> ScriptedJob:
    return ScriptedJob(folder)


Reach = Callable[[Path], ScriptedJob]
Fire = Callable[[ScriptedJob], None]
CASES: list[tuple[Reach, Fire, tuple[JobState, JobEvent, JobState]]] = [
    (starting, begin, (S.STARTING, E.BEGUN, S.STARTING)),
    (standby, nothing, (S.STARTING, E.STANDBY_STARTED, S.STANDBY)),
    (live, nothing, (S.STARTING, E.LIVE_STARTED, S.LIVE)),
    (waiting, nothing, (S.STARTING, E.PREDECESSOR_RUNS, S.WARMING_UP)),
    (unassigned, nothing, (S.STARTING, E.NOTHING_ASSIGNED, S.UNASSIGNED)),
    (starting, stop, (S.STARTING, E.STOP_REQUESTED, S.STOPPED)),
    (waiting, nothing, (S.WARMING_UP, E.WARM, S.WAITING)),
    (waiting, made_live, (S.WAITING, E.SPEC_CHANGED, S.STARTING)),
    (waiting, stop, (S.WAITING, E.STOP_REQUESTED, S.STOPPED)),
    (unassigned, made_live, (S.UNASSIGNED, E.SPEC_CHANGED, S.STARTING)),
    (unassigned, assign, (S.UNASSIGNED, E.ASSIGNMENT_CHANGED, S.STARTING)),
    (unassigned, stop, (S.UNASSIGNED, E.STOP_REQUESTED, S.STOPPED)),
    *(
        (reach, fire, (state, event, to))
        for reach, state in ((standby, S.STANDBY), (ready, S.READY), (cutting_over, S.CUTTING_OVER), (live, S.LIVE))
        for fire, event, to in (
            (plan, E.BATCH_PLANNED, state),
            (end, E.BATCH_PROCESSED, state),
            (fail, E.QUERY_FAILED, S.RECOVERING),
            (new_spec, E.SPEC_CHANGED, state),
            (stop, E.STOP_REQUESTED, S.STOPPING),
        )
    ),
    (standby, warm, (S.STANDBY, E.CAUGHT_UP, S.READY)),
    (standby, made_live, (S.STANDBY, E.MADE_LIVE, S.CUTTING_OVER)),
    (ready, made_live, (S.READY, E.MADE_LIVE, S.CUTTING_OVER)),
    (cutting_over, end, (S.CUTTING_OVER, E.BUFFER_PUBLISHED, S.LIVE)),
    (live, draft, (S.LIVE, E.ALERTS_DRAFTED, S.LIVE)),
    (standby, new_settings, (S.STANDBY, E.REPLAN_DUE, S.REPLANNING)),
    (ready, new_settings, (S.READY, E.REPLAN_DUE, S.REPLANNING)),
    (live, new_settings, (S.LIVE, E.REPLAN_DUE, S.REPLANNING)),
    (shared, assign, (S.LIVE, E.ASSIGNMENT_CHANGED, S.REPLANNING)),
    *(
        (reach, fire, (state, event, state))
        for reach, state in ((replanning, S.REPLANNING), (stopping, S.STOPPING))
        for fire, event in (
            (plan, E.BATCH_PLANNED),
            (end, E.BATCH_PROCESSED),
            (draft, E.ALERTS_DRAFTED),
            (boundary, E.BOUNDARY_REACHED),
        )
    ),
    (replanning, boundary, (S.REPLANNING, E.QUERY_ENDED, S.STARTING)),
    (replanning, fail, (S.REPLANNING, E.QUERY_FAILED, S.RECOVERING)),
    (replanning, stop, (S.REPLANNING, E.STOP_REQUESTED, S.STOPPING)),
    (stopping, boundary, (S.STOPPING, E.QUERY_ENDED, S.STOPPED)),
    (stopping, fail, (S.STOPPING, E.QUERY_FAILED, S.STOPPING)),
    (live, fail, (S.RECOVERING, E.RECOVERED, S.STARTING)),
    (live, flood, (S.RECOVERING, E.FLOODED, S.PAUSED)),
    (paused, retry, (S.PAUSED, E.RETRY_DUE, S.STARTING)),
    (paused, new_spec, (S.PAUSED, E.SPEC_CHANGED, S.PAUSED)),
    (paused, new_settings, (S.PAUSED, E.REPLAN_DUE, S.STARTING)),
    (paused, stop, (S.PAUSED, E.STOP_REQUESTED, S.STOPPED)),
]


def paused_instance(folder: Path) -> ScriptedJob:
    job = shared(folder)
    flood(job)
    job.recovery.raises = None
    return job


CASES.append((paused_instance, assign, (S.PAUSED, E.ASSIGNMENT_CHANGED, S.STARTING)))


@pytest.mark.parametrize(
    ("reach", "fire", "transition"), CASES, ids=lambda v: "-".join(v) if isinstance(v, tuple) else ""
)
def test_every_transition_happens(
    reach: Reach, fire: Fire, transition: tuple[JobState, JobEvent, JobState], tmp_path: Path
) -> None:
    job = reach(tmp_path)
    fire(job)
    assert transition in job.trace


def test_there_is_a_case_for_every_transition() -> None:
    assert sorted(case[2] for case in CASES) == sorted((*key, to) for key, (to, _) in TRANSITIONS.items())


def test_a_live_job_commits_each_batch_with_its_alerts_and_offsets(tmp_path: Path) -> None:
    job = live(tmp_path, generation=3)
    planned = job.plan_batch(0, 4, 6)
    assert planned.answer.result(0) is Admission.PROCESS
    processed = job.end_batch(0, 4, 6, alerts=[alert(0, 1), alert(1, 5)])
    assert processed.answer.result(0) is None
    assert job.log.offsets == {0: 4, 1: 6} == job.offsets
    assert job.log.metadata == CommitMetadata(3, "c1", 0)
    assert len(job.log.records) == 2
    status = job.parts.reporter.status
    assert (status.phase, status.batch, status.offsets, status.records) == (JobPhase.LIVE, 0, {0: 4, 1: 6}, 10)


def test_a_standby_commits_nothing(tmp_path: Path) -> None:
    job = standby(tmp_path)
    job.batch(0, 10, 10, alerts=[alert(0, 1)])
    assert (job.log.transactions, job.claims.claims) == (0, [])
    assert job.parts.reporter.status.phase is JobPhase.STANDBY


def test_a_standby_is_ready_once_it_is_warm_and_has_caught_up(tmp_path: Path) -> None:
    job = standby(tmp_path)
    job.driver.warm = True
    job.log.offsets = {0: 5_000, 1: 0}
    job.advance()
    assert state_of(job) is S.STANDBY
    job.batch(0, 4_500, 0)
    assert state_of(job) is S.READY
    assert job.parts.reporter.status.phase is JobPhase.READY


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


def test_a_failed_standby_ends_where_a_live_job_would_pause(tmp_path: Path) -> None:
    job = standby(tmp_path)
    with pytest.raises(Flood):
        flood(job)


def test_new_settings_hold_from_a_batch_boundary_on_with_the_state_of_the_operator(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.batch(0, 4, 4)
    assert job.progress.run is not None
    operator = job.progress.run.operator
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


def test_a_batch_of_an_aggregate_is_never_abandoned(tmp_path: Path) -> None:
    job = replanning(tmp_path, kind="aggregate")
    assert job.plan_batch(0, 10, 10).answer.result(0) is Admission.PROCESS


def test_a_query_that_does_not_come_to_a_boundary_is_stopped_inside_a_batch(tmp_path: Path) -> None:
    job = replanning(tmp_path)
    job._watch._entered -= STOP_SECONDS
    job.advance()
    assert state_of(job) is S.LIVE
    job = stopping(tmp_path)
    job._watch._entered -= STOP_SECONDS
    job.advance()
    assert state_of(job) is S.STOPPING, "who stops a job limits how long that may take"


def test_new_tables_plan_the_query_again(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.planner.tables = "2"
    job.advance()
    assert state_of(job) is S.REPLANNING
    job.advance()
    assert (job.state, job.planner.planned) == (S.LIVE, 2)


def test_a_spec_that_is_not_valid_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.write_spec(revision="bad", settings={"limit": "much"})
    job.advance()
    status = job.parts.reporter.status
    assert (job.state, status.revision) == (S.LIVE, "bad")
    assert "limit" in status.rejected
    job.write_spec(revision="good")
    job.advance()
    assert (status.revision, status.rejected) == ("good", "")


def test_a_batch_that_was_committed_before_a_crash_is_counted_again_and_not_committed(tmp_path: Path) -> None:
    log = Log()
    log.offsets, log.metadata = {0: 4, 1: 4}, CommitMetadata(1, "c1", 0)
    job = live(tmp_path, log=log)
    assert job.plan_batch(0, 4, 4).answer.result(0) is Admission.RECOUNT
    assert job.end_batch(0, 4, 4).answer.result(0) is None
    assert log.transactions == 0
    job.batch(1, 6, 6)
    assert (log.transactions, log.offsets) == (1, {0: 6, 1: 6})


def test_a_batch_that_fails_is_recovered_and_its_operator_is_dropped(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.batch(0, 4, 4)
    job.plan_batch(1, 10, 10)
    fail(job)
    assert job.recovery.ranges == [{0: (4, 10), 1: (4, 10)}]
    assert (job.state, job.planner.adopted[-1]) == (S.LIVE, None)


def test_a_query_that_fails_between_batches_keeps_the_state(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.batch(0, 4, 4)
    assert job.progress.run is not None
    operator = job.progress.run.operator
    fail(job)
    assert isinstance(operator, ScriptedOperator)
    assert job.planner.adopted[-1] is operator


def test_a_commit_that_fails_fails_the_batch_in_spark_too(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.log.broken = ValueError("no room")
    job.plan_batch(0, 10, 10)
    processed = job.end_batch(0, 10, 10)
    assert processed.answer.exception(0) is job.log.broken
    assert job.recovery.ranges == [{0: (0, 10), 1: (0, 10)}]


def test_a_job_that_a_newer_one_has_fenced_ends(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.log.fenced = True
    job.recovery.raises = fenced = Fenced("committing: fenced")
    job.plan_batch(0, 10, 10)
    with pytest.raises(Fenced) as raised:
        job.end_batch(0, 10, 10)
    assert raised.value is fenced
    assert job.log.transactions == 0


def test_a_paused_job_resumes_when_a_batch_is_committed(tmp_path: Path) -> None:
    job = paused(tmp_path)
    assert job.circuit_open == FLOOD.message
    assert job.driver.plan is None
    retry(job)
    assert (job.state, job.circuit_open) == (S.LIVE, FLOOD.message)
    job.batch(0, 1, 1)
    assert job.circuit_open == ""


def test_new_settings_close_the_circuit_at_once(tmp_path: Path) -> None:
    job = paused(tmp_path)
    new_settings(job)
    assert (job.state, job.circuit_open) == (S.LIVE, "")


def test_a_warm_standby_without_a_query_starts_when_it_is_made_live(tmp_path: Path) -> None:
    job = waiting(tmp_path)
    assert job.driver.warmed_up
    assert (job.driver.plan, job.claims.claims) == (None, [])
    assert job.parts.reporter.status.phase is JobPhase.READY
    made_live(job)
    assert (job.state, job.claims.claims) == (S.LIVE, [None])
    assert job.parts.reporter.status.generation == 2


def test_alerts_ahead_of_their_batch_are_published_and_the_commit_says_so(tmp_path: Path) -> None:
    job = live(tmp_path, standby_driver=False)
    draft(job)
    assert (len(job.log.records), job.log.transactions) == (1, 0)
    job.end_batch(0, 4, 4)
    assert job.log.metadata == CommitMetadata(1, "c1", 0, output_ahead=True)


def test_an_operator_whose_alerts_were_not_published_is_dropped(tmp_path: Path) -> None:
    job = live(tmp_path, standby_driver=False)
    job.log.broken = ValueError("no room")
    draft(job)
    assert (job.state, job.planner.adopted[-1]) == (S.LIVE, None)


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


@pytest.mark.parametrize(
    "reach", [live, standby, ready, cutting_over, replanning, stopping, paused, waiting, unassigned]
)
def test_a_stop_ends_a_job_in_every_state(reach: Reach, tmp_path: Path) -> None:
    job = reach(tmp_path)
    job.stop()
    job.driver.at_boundary = True
    for _ in range(3):
        job.advance() if job.state is not S.STOPPED else None
    assert (job.state, job.driver.plan) == (S.STOPPED, None)


def test_a_stop_comes_before_a_recovery(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.driver.at_boundary = False
    job.stop()
    fail(job)
    assert job.recovery.ranges == []
    assert state_of(job) is S.STOPPED


def test_what_a_stopped_query_had_ended_is_committed(tmp_path: Path) -> None:
    job = stopping(tmp_path, standby_driver=False)
    job.driver.late = [
        AlertsDrafted([alert(0, 1)]),
        BatchProcessed(0, {0: 4, 1: 4}, BatchResult([]), 0.0),
        TriggerEnded(8, 0),
    ]
    boundary(job)
    assert (job.state, job.log.offsets, len(job.log.records)) == (S.STOPPED, {0: 4, 1: 4}, 1)


def test_a_run_through_all_states_reports_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobLoop, "_check", lambda self: None)
    job = ScriptedJob(tmp_path)
    committed = job.log.commit

    def commit_and_stop(*given: Any) -> None:
        committed(*given)
        job.stop()

    monkeypatch.setattr(job.log, "commit", commit_and_stop)
    batch = BatchProcessed(0, {0: 1, 1: 1}, BatchResult([]), 0.0)
    job.driver.events += [BatchPlanned(0, batch.ends), batch]
    job.run()
    assert (job.state, job.log.offsets) == (S.STOPPED, {0: 1, 1: 1})
    assert job.parts.reporter.status.finished_at > 0


def test_an_idle_group_is_committed_again_before_it_expires(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.advance()
    assert job.log.transactions == 0
    output = job.progress.output
    assert isinstance(output, LiveOutput)
    output._committed_at -= REFRESH_SECONDS
    job.advance()
    job.advance()
    assert (job.log.transactions, job.log.offsets) == (1, {0: 0, 1: 0})
