"""What a job polls in which state, and how often."""

import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lozenge.job.drivers.driver import BatchProgressed, QueryFailed, TriggerEnded
from lozenge.job.lifecycle import job_watch
from lozenge.job.lifecycle.circuit_breaker import RETRY_INTERVAL_SECONDS
from lozenge.job.lifecycle.job_state import JobEvent, JobState
from lozenge.process.shutdown import STOP_SECONDS
from lozenge.spark.query_progress import StateSize
from tests.shared.job.lifecycle.scripted import ScriptedJob


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_watch, "STANDBY_POLL_SECONDS", 0.0)
    monkeypatch.setattr(job_watch, "POLL_SECONDS", {})


def found(job: ScriptedJob, state: JobState) -> list[JobEvent]:
    return [happened.event for happened in job._watch.poll(state)]


def test_tables_are_looked_at_now_and_then(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    job.planner.tables.newest = "2"
    assert found(job, JobState.LIVE) == []
    job._watch._tables_polled -= job_watch.TABLE_POLL_SECONDS
    assert found(job, JobState.LIVE) == [JobEvent.REPLAN_DUE]


def test_a_refused_table_is_an_alarm_until_its_file_is_good_and_the_query_continues(
    tmp_path: Path,
) -> None:
    job = ScriptedJob(tmp_path).begin()
    refused = "table limits: /ref/limits.csv is refused: it has no rows; version 1 with 3 rows stays in force"
    with capture_logs() as lines:
        for alarms in ([refused], [refused], []):
            job.planner.tables.refused = alarms
            job._watch._tables_polled -= job_watch.TABLE_POLL_SECONDS
            assert found(job, JobState.LIVE) == []
            assert job.parts.reporter.status.table_alarms == alarms
            assert job.parts.metrics.snapshot()["samples"]["lozenge_tables_refused"] == len(alarms)
    assert [(line["log_level"], line["event"]) for line in lines] == [("error", f"running one: {refused}")], "once"


def test_the_group_is_looked_at_now_and_then(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path, standby=True).begin()
    job.driver.warm = True
    assert found(job, JobState.STANDBY) == []
    job._watch._readiness_polled -= job_watch.READINESS_POLL_SECONDS
    assert found(job, JobState.STANDBY) == [JobEvent.CAUGHT_UP]


@pytest.mark.parametrize(("warm", "lag", "ready"), [(False, 0, False), (True, 1_001, False), (True, 1_000, True)])
def test_a_standby_is_ready_when_it_is_warm_and_near_the_live_job(
    warm: bool, lag: int, ready: bool, tmp_path: Path
) -> None:
    job = ScriptedJob(tmp_path, standby=True).begin()
    job.driver.warm, job.log.offsets = warm, {0: lag, 1: 0}
    job._watch._readiness_polled -= job_watch.READINESS_POLL_SECONDS
    assert found(job, JobState.STANDBY) == ([JobEvent.CAUGHT_UP] if ready else [])


def test_a_halved_batch_grows_again_after_enough_good_ones(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    limit = job.planner.limit
    assert limit is not None
    limit.shrink()
    for _ in range(100):
        limit.succeeded()
    assert found(job, JobState.LIVE) == [JobEvent.REPLAN_DUE]
    assert limit.value == 100


def test_while_a_query_is_drained_nothing_else_is_decided(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    job.write_spec(revision="next", settings={"limit": 7})
    job.driver.at_boundary = False
    assert found(job, JobState.REPLANNING) == []
    assert job.parts.specs.spec.revision == ""
    job.driver.at_boundary = True
    assert found(job, JobState.REPLANNING) == [JobEvent.BOUNDARY_REACHED]


@pytest.mark.parametrize(("state", "overdue"), [(JobState.REPLANNING, True), (JobState.STOPPING, False)])
def test_only_a_query_that_is_planned_again_may_be_cut_short(state: JobState, overdue: bool, tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    job.driver.at_boundary = False
    job._watch._entered -= STOP_SECONDS + 1
    assert found(job, state) == ([JobEvent.BOUNDARY_REACHED] if overdue else [])


def test_a_paused_job_retries_once_a_minute_and_at_once_under_other_settings(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    assert found(job, JobState.PAUSED) == []
    job._watch._entered -= RETRY_INTERVAL_SECONDS
    assert found(job, JobState.PAUSED) == [JobEvent.RETRY_DUE]
    job._watch.entered()
    job.write_spec(settings={"limit": 7})
    assert found(job, JobState.PAUSED) == [JobEvent.SPEC_CHANGED, JobEvent.REPLAN_DUE]


def test_progress_of_the_query_is_reported_and_no_event(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    assert "lozenge_state_rows" not in job.parts.metrics.snapshot()["samples"]
    job.driver.events += [TriggerEnded(10, 7, StateSize(8, 9)), BatchProgressed(5, 3)]
    assert found(job, JobState.LIVE) == []
    samples = job.parts.metrics.snapshot()["samples"]
    assert (samples["lozenge_state_rows"], samples["lozenge_state_bytes"]) == (8, 9)
    assert (samples["lozenge_lag_offsets"], job.parts.reporter.status.lag) == (5, 5)


def test_a_wait_without_a_query_ends_with_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_watch, "STANDBY_POLL_SECONDS", 60.0)
    job = ScriptedJob(tmp_path, shared=True).begin()
    job.stop()
    began = time.monotonic()
    assert found(job, JobState.UNASSIGNED) == []
    assert time.monotonic() - began < 30


def test_what_happens_in_a_query_comes_before_what_is_polled(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    job.write_spec(revision="next")
    job.driver.events.append(QueryFailed(ValueError("broken")))
    job.assignment.assigned()
    job.assignment.partitions = frozenset({1})
    assert found(job, JobState.LIVE) == [JobEvent.QUERY_FAILED, JobEvent.SPEC_CHANGED, JobEvent.ASSIGNMENT_CHANGED]
