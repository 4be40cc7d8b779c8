"""What a job that stands by has judged and not told, until it takes over."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult
from lozenge.job.commit.alert_encoder import FailedRecord, FailureWithoutRecord, Finding

MAX_HELD = 100_000
"""More than this, and memory is at risk: the live release has been stuck for long, or this one raises too much."""

T = TypeVar("T", Finding, FailureWithoutRecord)


class StandbyBuffer:
    """Findings and failures behind the offsets that the live release has decided."""

    def __init__(self, decided: Mapping[int, int]) -> None:
        self._decided = decided
        self._findings: list[Finding] = []
        self._poisoned: list[FailedRecord] = []
        self._unplaced: list[FailureWithoutRecord] = []

    def add(self, judged: BatchResult) -> None:
        """Keeps what the live release has not decided yet; raises DetectorError if that is too much."""
        self._findings += judged.findings
        self._poisoned += judged.poisoned
        self._unplaced += judged.unplaced
        self.prune(self._decided)
        if len(self._findings) + len(self._poisoned) > MAX_HELD:
            raise DetectorError(
                f"standing by: more than {MAX_HELD} alerts are held back since the live release last committed",
                hint="the live release is stuck, or this one raises far more: `lozenge try` shows what it tells",
            )

    def prune(self, decided: Mapping[int, int]) -> BatchResult:
        """Drops what lies before the offsets `decided`; returns what is left. A group's lie nowhere and stay."""
        self._decided = decided
        self._findings = self._left(self._findings)
        self._unplaced = self._left(self._unplaced)
        self._poisoned = [p for p in self._poisoned if p.offset >= decided[p.partition]]
        return BatchResult(self._findings, self._poisoned, self._unplaced)

    def _left(self, found: Sequence[T]) -> list[T]:
        return [f for f in found if f.place is None or f.place[1] >= self._decided[f.place[0]]]
