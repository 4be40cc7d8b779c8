"""A job's status, as it is in its folder."""

import os
import time
from pathlib import Path

import psutil

from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.protocol.coverage import Versions
from lozenge.protocol.job_status import JOB_STATUS, JobPhase, read_job_status


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.update(generation=7, revision="one")
    status = read_job_status(tmp_path)
    assert status == reporter.status
    assert status is not None
    assert (status.pid, status.created) == (os.getpid(), psutil.Process().create_time())
    assert (status.phase, status.generation, status.revision) == (JobPhase.STARTING, 7, "one")
    assert [p.name for p in tmp_path.iterdir()] == [JOB_STATUS]


def test_there_is_no_status_before_the_first_update_or_in_a_broken_file(tmp_path: Path) -> None:
    JobStatusReporter(tmp_path)
    assert read_job_status(tmp_path) is None
    (tmp_path / JOB_STATUS).write_text("{")
    assert read_job_status(tmp_path) is None


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    reporter = JobStatusReporter(None)
    reporter.update(generation=7)
    assert reporter.status.generation == 7


def test_the_file_is_written_only_when_the_status_changes(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.update(lag=1)
    before = (tmp_path / JOB_STATUS).stat()
    reporter.update(lag=1)
    assert os.path.samestat((tmp_path / JOB_STATUS).stat(), before)
    assert (tmp_path / JOB_STATUS).stat().st_mtime_ns == before.st_mtime_ns


def test_settings_are_in_force_from_the_offsets_where_the_first_query_with_them_started(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.update(rejected="limit: too small")
    reporter.query_started(JobPhase.LIVE, "one", Versions("digest-1"), {0: 5})
    reporter.query_started(JobPhase.LIVE, "two", Versions("digest-1"), {0: 9})
    assert (reporter.status.revision, reporter.status.since, reporter.status.rejected) == ("two", {0: 5}, "")
    reporter.query_started(JobPhase.LIVE, "three", Versions("digest-2"), {0: 11})
    assert reporter.status.since == {0: 11}


def test_a_release_is_live_from_the_offsets_where_its_first_transaction_began(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.query_started(JobPhase.STANDBY, "one", Versions("digest"), {0: 5})
    reporter.went_live(8, {0: 7}, {0: 9})
    now = reporter.status
    assert (now.phase, now.generation, now.since, now.offsets) == (JobPhase.LIVE, 8, {0: 7}, {0: 9})
    assert now.last_progress_at == now.last_commit_at > time.time() - 60


def test_transactions_add_up_and_each_is_the_end_of_a_batch(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.committed(3, {0: 9}, 100, 2)
    reporter.committed(4, {0: 19}, 10, 1)
    status = read_job_status(tmp_path)
    assert status is not None
    assert (status.batch, status.offsets, status.records, status.dead_letters) == (4, {0: 19}, 110, 3)
    assert status.last_progress_at == status.last_commit_at > 0


def test_progress_is_written_at_most_once_a_second(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.progressed()
    first = reporter.status.last_progress_at
    assert first > 0
    reporter.update(last_progress_at=time.time() + 60)
    later = reporter.status.last_progress_at
    reporter.progressed()
    assert reporter.status.last_progress_at == later


def test_only_the_first_batch_is_reported(tmp_path: Path) -> None:
    reporter = JobStatusReporter(tmp_path)
    reporter.first_batch_done()
    first = reporter.status.first_batch_at
    assert first > 0
    reporter.first_batch_done()
    assert reporter.status.first_batch_at == first
