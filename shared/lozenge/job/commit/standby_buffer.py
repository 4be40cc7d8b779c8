"""What a job that stands by has judged and not told, until it takes over."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord

MAX_HELD = 100_000
"""More than this, and memory is at risk: the live release has been stuck for long, or this one raises too much."""

T = TypeVar("T", DraftAlert, FailureWithoutRecord)


class StandbyBuffer:
    """Findings and failures behind the offsets that the live release has decided."""

    def __init__(self, decided: Mapping[int, int]) -> None:
        self._decided = decided
        self._alerts: list[DraftAlert] = []
        self._failed: list[FailedRecord] = []
        self._failures: list[FailureWithoutRecord] = []

    def add(self, judged: BatchResult) -> None:
        """Keeps what the live release has not decided yet; raises DetectorError if that is too much."""
        self._alerts += judged.alerts
        self._failed += judged.failed_records
        self._failures += judged.failures_without_record
        self.prune(self._decided)
        if len(self._alerts) + len(self._failed) > MAX_HELD:
            raise DetectorError(
                f"standing by: more than {MAX_HELD} alerts are held back since the live release last committed",
                hint="the live release is stuck, or this one raises far more: `lozenge try` shows what it tells",
            )

    def prune(self, decided: Mapping[int, int]) -> BatchResult:
        """Drops what lies before the offsets `decided`; returns what is left. A group's lie nowhere and stay."""
        self._decided = decided
        self._alerts = self._left(self._alerts)
        self._failures = self._left(self._failures)
        self._failed = [p for p in self._failed if p.offset >= decided[p.partition]]
        return BatchResult(self._alerts, self._failed, self._failures)

    def _left(self, found: Sequence[T]) -> list[T]:
        return [f for f in found if f.position is None or f.position[1] >= self._decided[f.position[0]]]
