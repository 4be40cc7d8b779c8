"""The result of a batch: what belongs to which partitions, and which failures become dead letters."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lozenge.detector.events import Alert
from lozenge.errors import DecodeError, DetectError, EncodeError
from lozenge.job.batch_result import (
    BatchResult,
    DraftAlert,
    FailedRecord,
    FailureWithoutRecord,
    count,
    first_reached,
    joined,
)
from lozenge.metrics.app_metrics import JobMetrics

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
RAISED = DetectError("processing")


def draft(partition: int | None) -> DraftAlert:
    return DraftAlert(
        Alert(reason="seen"), "card_1", "key", AT, AT, position=None if partition is None else (partition, 7)
    )


def failed(partition: int, error: Exception | None = None) -> FailedRecord:
    return FailedRecord(partition, 9, error or RAISED)


def failure(partition: int) -> FailureWithoutRecord:
    return FailureWithoutRecord("timer", "timer/1", partition, b"card_1", b"{}", RAISED)


@pytest.mark.parametrize("arrived", [True, False], ids=["of a record", "of a group or a timer"])
def test_every_alert_has_a_latency(arrived: bool) -> None:
    metrics, earlier = JobMetrics("spotter"), datetime.now(UTC) - timedelta(seconds=7)
    times = {"event_time": AT, "arrived": earlier} if arrived else {"event_time": earlier, "arrived": None}
    count(metrics, BatchResult([replace(draft(0), **times)]))
    samples = metrics.snapshot()["samples"]
    assert samples["lozenge_latency_seconds_count"] == 1
    assert 7 <= samples["lozenge_latency_seconds_sum"] < 30


def test_an_instance_commits_what_belongs_to_its_partitions() -> None:
    result = BatchResult([draft(0), draft(1), draft(None)], [failed(0), failed(1)], [failure(0), failure(1)])
    assert result.within({1}) == BatchResult([draft(1)], [failed(1)], [failure(1)])


def test_every_failure_becomes_a_dead_letter_with_or_without_a_record() -> None:
    result = BatchResult([draft(0)], [failed(0)], [failure(1)])
    assert result.failures == [failed(0), failure(1)]


def test_results_are_joined_in_order_after_the_excluded_records() -> None:
    first, second = BatchResult([draft(0)], [failed(0)]), BatchResult([draft(1)], [], [failure(1)])
    assert joined([first, second], [failed(2)]) == BatchResult(
        [draft(0), draft(1)], [failed(2), failed(0)], [failure(1)]
    )


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (DecodeError("no"), "decode"),
        (EncodeError("no"), "encode"),
        (DetectError("no"), "detect"),
        (KeyError(1), "detect"),
    ],
)
def test_the_error_names_the_stage_at_which_a_record_failed(error: Exception, stage: str) -> None:
    assert failed(0, error).stage == stage


def test_a_batch_reaches_the_failed_records_between_its_offsets() -> None:
    records = [FailedRecord(0, offset, RAISED) for offset in (4, 5, 8, 9)] + [FailedRecord(2, 5, RAISED)]
    assert [r.position for r in first_reached(records, {0: 5, 1: 0}, {0: 9, 1: 9})] == [(0, 5), (0, 8)]
