"""What one that stands by holds back, and what of it is left to tell."""

from datetime import UTC, datetime

import pytest

from lozenge.detector.events import Alert
from lozenge.errors import DetectError, DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord
from lozenge.job.commit import standby_buffer as held_module
from lozenge.job.commit.standby_buffer import StandbyBuffer

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def draft(place: tuple[int, int] | None) -> DraftAlert:
    return DraftAlert(Alert(reason="seen"), "card_1", "dedup_key", AT, AT, place, place)


def poisoned(partition: int, offset: int) -> FailedRecord:
    return FailedRecord(partition, offset, DetectError("judging"))


def failures(place: tuple[int, int] | None) -> FailureWithoutRecord:
    return FailureWithoutRecord("detect", "a timer", 0, b"card_1", b"{}", DetectError("judging"), place)


def places(judged: BatchResult) -> list[tuple[int, int] | None]:
    return [f.position for f in judged.alerts]


def test_what_the_live_release_has_decided_is_not_held() -> None:
    held = StandbyBuffer({0: 10, 1: 5})
    held.add(
        BatchResult(
            [draft((0, 9)), draft((0, 10)), draft((1, 9))],
            [poisoned(0, 9), poisoned(1, 5)],
            [failures((0, 1)), failures((0, 11))],
        )
    )
    left = held.prune({0: 10, 1: 5})
    assert places(left) == [(0, 10), (1, 9)]
    assert [(p.partition, p.offset) for p in left.failed_records] == [(1, 5)]
    assert [u.position for u in left.failures_without_record] == [(0, 11)]


def test_what_it_decides_later_is_forgotten_in_order() -> None:
    held = StandbyBuffer({0: 0})
    held.add(BatchResult([draft((0, offset)) for offset in range(5)]))
    assert places(held.prune({0: 3})) == [(0, 3), (0, 4)]
    held.add(BatchResult([draft((0, 2)), draft((0, 7))]))  # one that reads behind
    assert places(held.prune({0: 3})) == [(0, 3), (0, 4), (0, 7)]
    assert places(held.prune({0: 8})) == []


def test_what_belongs_to_no_record_stays() -> None:
    held = StandbyBuffer({0: 10})
    held.add(BatchResult([draft(None)], (), [failures(None)]))
    left = held.prune({0: 1000})
    assert (places(left), [u.position for u in left.failures_without_record]) == ([None], [None])


def test_too_much_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "MAX_HELD", 3)
    held = StandbyBuffer({0: 0})
    held.add(BatchResult([draft((0, 1)), draft((0, 2))], [poisoned(0, 3)]))
    with pytest.raises(DetectorError, match="held back"):
        held.add(BatchResult([draft((0, 4))]))
