"""A batch is counted once Spark has reported it, by what its rows were."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.spark.live_lag import LiveProgress
from lozenge_upstream.streaming.batch_metrics import Progress

COUNTS: dict[str, Any] = {"written": 18, "events": 9, "dead": 3, "decode": 2, "oldest": 1_000_000, "reasons": []}


class Report:
    """A query's report of its batches, and the reporter, which notes what it publishes."""

    def __init__(self) -> None:
        self.metrics = UpstreamMetrics("upstream")
        self.recentProgress: list[Any] = []
        self.published: list[dict[str, float]] = []

    def publish(self) -> None:
        self.published.append(self.samples)

    @property
    def samples(self) -> dict[str, float]:
        found: dict[str, float] = self.metrics.snapshot()["samples"]
        return found

    def ended(self, batch: int, **counts: Any) -> None:
        observed = {"outputs": SimpleNamespace(asDict=lambda: COUNTS | counts)}
        self.recentProgress.append(SimpleNamespace(batchId=batch, observedMetrics=observed))


@pytest.fixture
def report() -> Iterator[Report]:
    with capture_logs():
        yield Report()


def progress_of(report: Any) -> Progress:
    return Progress(report.metrics, report)


def reported(progress: Progress, query: Any, lag: int = 0) -> None:
    progress.report(query, lag)


def test_the_begin_and_the_commit_of_a_batch_are_published_at_once(report: Report) -> None:
    progress = progress_of(report)
    progress.started(12)
    progress.committed(0, 12, 0.5)
    names = ("lozenge_offsets_begun_total", "lozenge_offsets_committed_total")
    assert [tuple(samples[name] for name in names) for samples in report.published] == [(12, 0), (12, 12)]


def test_a_batch_counts_once_spark_has_reported_it(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(0, 12, 0.5)
    reported(progress, report, lag=4)
    assert report.samples["lozenge_lag_offsets"] == 4
    assert report.samples["lozenge_records_total"] == 0, "Spark has not reported it yet"
    report.ended(0)
    for _ in range(2):
        reported(progress, report)
        samples = report.samples
        assert samples["lozenge_records_total"] == 9 + 3
        assert samples["lozenge_emitted_total"] == 18
        assert samples["lozenge_dead_letters_total{stage=decode}"] == 2
        assert samples["lozenge_dead_letters_total{stage=normalise}"] == 1
        latencies = samples["lozenge_latency_seconds_count"], samples["lozenge_backlog_latency_seconds_count"]
        assert (samples["lozenge_batch_seconds_count"], *latencies) == (1, 0, 1), "its records arrived long ago"


def test_a_batch_that_spark_has_reported_and_nobody_committed_does_not_count(report: Report) -> None:
    report.ended(0)
    reported(progress_of(report), report)
    assert report.samples["lozenge_records_total"] == 0


def test_a_batch_without_rows_does_not_count(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(0, 0, 0.5)
    report.ended(0, written=0, events=0, dead=0, decode=0, oldest=None)
    reported(progress, report)
    assert report.samples["lozenge_batch_seconds_count"] == 0


def test_in_real_time_mode_every_row_has_its_latency(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(0, 12, 2.0)
    times = [{"item": 40, "count": 17}, {"item": None, "count": 3}, {"item": 900, "count": 4}]
    report.ended(0, count=24, times=times)
    reported(progress, report)
    assert report.samples["lozenge_latency_seconds_count"] == 21
    assert report.samples["lozenge_latency_seconds_bucket{le=0.05}"] == 17


def test_progress_within_a_batch_is_the_lag_and_what_was_read(report: Report) -> None:
    progress_of(report).read_up_to(LiveProgress(lag=6, read=5))
    assert report.samples["lozenge_lag_offsets"] == 6
    assert report.samples["lozenge_offsets_begun_total"] == 5


def test_the_log_has_the_reasons_of_dead_letters(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(7, 12, 0.5)
    report.ended(7, reasons=[{"item": "tombstone", "count": 2}, {"item": None, "count": 9}])
    with capture_logs() as said:
        reported(progress, report)
    assert said == [
        {"event": "dead letters", "log_level": "warning", "batch": 7, "count": 3, "reasons": {"tombstone": 2}}
    ]


def test_a_batch_of_records_without_a_clock_counts_and_has_no_latency(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(0, 3, 0.5)
    report.ended(0, written=0, events=0, dead=3, decode=0, oldest=None)
    reported(progress, report)
    assert report.samples["lozenge_records_total"] == 3
    assert report.samples["lozenge_latency_seconds_count"] == 0


def test_records_that_are_skipped_count_by_what_skips_them_and_are_no_dead_letters(report: Report) -> None:
    progress = progress_of(report)
    progress.committed(7, 12, 0.5)
    skipped = {"skip:auth_iso8583/no_payment": 4, "skip:auth_iso8583/unanswered_request": 0}
    reasons = [{"item": "skip:auth_iso8583/no_payment", "count": 4}]
    report.ended(7, **skipped, written=0, events=0, dead=0, decode=0, reasons=reasons)
    with capture_logs() as said:
        reported(progress, report)
    assert said == []
    assert report.samples["lozenge_records_total"] == 4
    assert report.samples["lozenge_skipped_total{skip=no_payment,source=auth_iso8583}"] == 4
    assert report.samples["lozenge_skipped_total{skip=unanswered_request,source=auth_iso8583}"] == 0
    assert report.samples["lozenge_dead_letters_total{stage=normalise}"] == 0
