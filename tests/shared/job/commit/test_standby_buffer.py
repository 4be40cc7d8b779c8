"""What a standby buffers, and what of it is published at the cut-over."""

from datetime import UTC, datetime

import pytest

from lozenge.detector.events import Alert
from lozenge.errors import DetectError, DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord
from lozenge.job.commit import standby_buffer
from lozenge.job.commit.standby_buffer import StandbyBuffer

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def begun(offsets: dict[int, int]) -> StandbyBuffer:
    return StandbyBuffer(offsets)


def draft(position: tuple[int, int] | None) -> DraftAlert:
    return DraftAlert(Alert(reason="seen"), "card_1", "key", AT, AT, position, position)


def failed(partition: int, offset: int) -> FailedRecord:
    return FailedRecord(partition, offset, DetectError("processing"))


def failure(position: tuple[int, int] | None) -> FailureWithoutRecord:
    return FailureWithoutRecord("detect", "a timer", 0, b"card_1", b"{}", DetectError("processing"), position)


def positions(result: BatchResult) -> list[tuple[int, int] | None]:
    return [alert.position for alert in result.alerts]


def test_what_the_live_job_has_committed_is_not_buffered() -> None:
    buffer = begun({0: 10, 1: 5})
    buffer.add(
        BatchResult(
            [draft((0, 9)), draft((0, 10)), draft((1, 9))],
            [failed(0, 9), failed(1, 5)],
            [failure((0, 1)), failure((0, 11))],
        )
    )
    left = buffer.prune({0: 10, 1: 5})
    assert positions(left) == [(0, 10), (1, 9)]
    assert [record.position for record in left.failed_records] == [(1, 5)]
    assert [f.position for f in left.failures_without_record] == [(0, 11)]


def test_what_the_live_job_commits_later_is_dropped_in_order() -> None:
    buffer = begun({0: 0})
    buffer.add(BatchResult([draft((0, offset)) for offset in range(5)]))
    assert positions(buffer.prune({0: 3})) == [(0, 3), (0, 4)]
    buffer.add(BatchResult([draft((0, 2)), draft((0, 7))]))  # from a standby that lags
    assert positions(buffer.prune({0: 3})) == [(0, 3), (0, 4), (0, 7)]
    assert positions(buffer.prune({0: 8})) == []


def test_what_belongs_to_no_record_is_kept() -> None:
    buffer = begun({0: 10})
    buffer.add(BatchResult([draft(None)], (), [failure(None)]))
    left = buffer.prune({0: 1000})
    assert (positions(left), [f.position for f in left.failures_without_record]) == ([None], [None])


def test_more_than_the_buffer_holds_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby_buffer, "MAX_BUFFERED", 3)
    buffer = begun({0: 0})
    buffer.add(BatchResult([draft((0, 1)), draft((0, 2))], [failed(0, 3)]))
    with pytest.raises(DetectorError, match="buffers more than"):
        buffer.add(BatchResult([draft((0, 4))]))
