"""What a job tells of itself in its folder."""

import os
import time
from pathlib import Path

import psutil

from lozenge.protocol.job_status import REPORT, JobStatusReporter, Phase, read_job_status


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.say(generation=7, revision="one")
    report = read_job_status(tmp_path)
    assert report == reporting.now
    assert report is not None
    assert (report.pid, report.created) == (os.getpid(), psutil.Process().create_time())
    assert (report.phase, report.generation, report.revision) == (Phase.STARTING, 7, "one")
    assert [p.name for p in tmp_path.iterdir()] == [REPORT]


def test_before_a_job_has_told_anything_there_is_none(tmp_path: Path) -> None:
    JobStatusReporter(tmp_path)
    assert read_job_status(tmp_path) is None
    (tmp_path / REPORT).write_text("{")
    assert read_job_status(tmp_path) is None


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    reporting = JobStatusReporter(None)
    reporting.say(generation=7)
    assert reporting.now.generation == 7


def test_the_file_changes_only_with_what_it_says(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.say(lag=1)
    before = (tmp_path / REPORT).stat()
    reporting.say(lag=1)
    assert os.path.samestat((tmp_path / REPORT).stat(), before)
    assert (tmp_path / REPORT).stat().st_mtime_ns == before.st_mtime_ns


def test_settings_hold_from_where_the_query_started_with_them(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.say(refused="limit: too small")
    reporting.began(Phase.LIVE, "one", "digest-1", {0: 5})
    reporting.began(Phase.LIVE, "two", "digest-1", {0: 9})
    assert (reporting.now.revision, reporting.now.since, reporting.now.refused) == ("two", {0: 5}, "")
    reporting.began(Phase.LIVE, "three", "digest-2", {0: 11})
    assert reporting.now.since == {0: 11}


def test_a_release_holds_from_where_its_first_transaction_began(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.began(Phase.STANDBY, "one", "digest", {0: 5})
    reporting.took_over(8, {0: 7}, {0: 9})
    now = reporting.now
    assert (now.phase, now.generation, now.since, now.offsets) == (Phase.LIVE, 8, {0: 7}, {0: 9})
    assert now.turned_at == now.committed_at > time.time() - 60


def test_transactions_add_up_and_each_is_the_end_of_a_batch(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.committed(3, {0: 9}, 100, 2)
    reporting.committed(4, {0: 19}, 10, 1)
    report = read_job_status(tmp_path)
    assert report is not None
    assert (report.batch, report.offsets, report.records, report.dead_letters) == (4, {0: 19}, 110, 3)
    assert report.turned_at == report.committed_at > 0


def test_that_a_query_waits_is_written_once_a_second_at_most(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.turned()
    first = reporting.now.turned_at
    assert first > 0
    reporting.say(turned_at=time.time() + 60)
    later = reporting.now.turned_at
    reporting.turned()
    assert reporting.now.turned_at == later


def test_only_the_first_batch_is_told_of(tmp_path: Path) -> None:
    reporting = JobStatusReporter(tmp_path)
    reporting.first_batch()
    first = reporting.now.first_batch_at
    assert first > 0
    reporting.first_batch()
    assert reporting.now.first_batch_at == first
