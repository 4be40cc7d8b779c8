"""What becomes of batches and of queries that end or fail; the query and the log are scripted."""

from pathlib import Path

import pytest

from lozenge.errors import Fenced, Flood
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers.driver import Admission, AlertsDrafted, BatchProcessed, TriggerEnded
from lozenge.job.lifecycle.job_state import JobEvent, JobState
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.job_status import JobPhase
from tests.shared.job.lifecycle.reaching import (
    FLOOD,
    boundary,
    draft,
    fail,
    flood,
    live,
    paused,
    replanning,
    retry,
    standby,
    stopping,
)
from tests.shared.job.lifecycle.scripted import Log, ScriptedOperator, alert

pytestmark = pytest.mark.usefixtures("no_waiting")

S, E = JobState, JobEvent


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


def test_a_failed_standby_ends_where_a_live_job_would_pause(tmp_path: Path) -> None:
    job = standby(tmp_path)
    with pytest.raises(Flood):
        flood(job)


def test_a_batch_of_an_aggregate_is_never_abandoned(tmp_path: Path) -> None:
    job = replanning(tmp_path, kind="aggregate")
    assert job.plan_batch(0, 10, 10).answer.result(0) is Admission.PROCESS


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
    assert job.current.run is not None
    operator = job.current.run.operator
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


def test_what_a_stopped_query_had_ended_is_committed(tmp_path: Path) -> None:
    job = stopping(tmp_path, standby_driver=False)
    job.driver.late = [
        AlertsDrafted([alert(0, 1)]),
        BatchProcessed(0, {0: 4, 1: 4}, BatchResult([]), 0.0),
        TriggerEnded(8, 0),
    ]
    boundary(job)
    assert (job.state, job.log.offsets, len(job.log.records)) == (S.STOPPED, {0: 4, 1: 4}, 1)


def test_a_paused_job_resumes_when_a_batch_is_committed(tmp_path: Path) -> None:
    job = paused(tmp_path)
    assert job.circuit_open == FLOOD.message
    assert job.driver.plan is None
    retry(job)
    assert (job.state, job.circuit_open) == (S.LIVE, FLOOD.message)
    job.batch(0, 1, 1)
    assert job.circuit_open == ""
