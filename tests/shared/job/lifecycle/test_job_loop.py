"""A job through its states, with a scripted query and log: every transition, and what each guarantees."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers.driver import BatchPlanned, BatchProcessed
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_state import TRANSITIONS, JobEvent, JobState
from lozenge.job.lifecycle.outputs import REFRESH_SECONDS, LiveOutput
from lozenge.process.shutdown import STOP_SECONDS
from lozenge.protocol.job_status import JobPhase
from tests.shared.job.lifecycle.reaching import (
    assign,
    begin,
    boundary,
    cutting_over,
    draft,
    end,
    fail,
    flood,
    live,
    made_live,
    new_settings,
    new_spec,
    nothing,
    paused,
    paused_instance,
    plan,
    ready,
    replanning,
    retry,
    shared,
    standby,
    starting,
    state_of,
    stop,
    stopping,
    unassigned,
    waiting,
    warm,
)
from tests.shared.job.lifecycle.scripted import ScriptedJob

pytestmark = pytest.mark.usefixtures("no_waiting")

S, E = JobState, JobEvent


Reach = Callable[[Path], ScriptedJob]
Fire = Callable[[ScriptedJob], None]
CASES: list[tuple[Reach, Fire, tuple[JobState, JobEvent, JobState]]] = [
    (starting, begin, (S.STARTING, E.BEGUN, S.STARTING)),
    (standby, nothing, (S.STARTING, E.STANDBY_STARTED, S.STANDBY)),
    (live, nothing, (S.STARTING, E.LIVE_STARTED, S.LIVE)),
    (waiting, nothing, (S.STARTING, E.PREVIOUS_INSTANCE_RUNS, S.WARMING_UP)),
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


def test_a_standby_is_ready_after_its_warm_up_once_it_has_caught_up(tmp_path: Path) -> None:
    job = standby(tmp_path)
    job.driver.warm = True
    job.log.offsets = {0: 5_000, 1: 0}
    job.advance()
    assert state_of(job) is S.STANDBY
    job.batch(0, 4_500, 0)
    assert state_of(job) is S.READY
    assert job.parts.reporter.status.phase is JobPhase.READY


def test_a_query_that_does_not_come_to_a_boundary_is_stopped_inside_a_batch(tmp_path: Path) -> None:
    job = replanning(tmp_path)
    job._watch._entered -= STOP_SECONDS
    job.advance()
    assert state_of(job) is S.LIVE
    job = stopping(tmp_path)
    job._watch._entered -= STOP_SECONDS
    job.advance()
    assert state_of(job) is S.STOPPING, "who stops a job limits how long that may take"


def test_a_spec_that_is_not_valid_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    job = live(tmp_path)
    job.write_spec(revision="bad", settings={"limit": "much"})
    job.advance()
    status = job.parts.reporter.status
    assert (job.state, status.revision) == (S.LIVE, "bad")
    assert "limit" in status.rejected
    job.write_spec(revision="good")
    job.advance()
    status = job.parts.reporter.status
    assert (status.revision, status.rejected) == ("good", "")


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
    output = job.current.output
    assert isinstance(output, LiveOutput)
    output._committed_at -= REFRESH_SECONDS
    job.advance()
    job.advance()
    assert (job.log.transactions, job.log.offsets) == (1, {0: 0, 1: 0})
