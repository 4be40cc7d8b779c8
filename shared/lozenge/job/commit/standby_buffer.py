"""The output of a standby job, buffered until the cut-over."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord

MAX_BUFFERED = 100_000
"""The most alerts and failed records in memory. More means that the live job is stuck or this one alerts too much."""

T = TypeVar("T", DraftAlert, FailureWithoutRecord)


class StandbyBuffer:
    """Alerts and failures after the offsets that the live job has `committed`."""

    def __init__(self, committed: Mapping[int, int]) -> None:
        self._committed = committed
        self._alerts: list[DraftAlert] = []
        self._failed: list[FailedRecord] = []
        self._failures: list[FailureWithoutRecord] = []

    def add(self, result: BatchResult) -> None:
        """Keeps what the live job has not committed yet; raises DetectorError if that is too much."""
        self._alerts += result.alerts
        self._failed += result.failed_records
        self._failures += result.failures_without_record
        self.prune(self._committed)
        if len(self._alerts) + len(self._failed) > MAX_BUFFERED:
            raise DetectorError(
                f"running a standby: it buffers more than {MAX_BUFFERED} alerts since the live job last committed",
                hint="the live job is stuck, or this release emits far more alerts: `lozenge try` shows them",
            )

    def prune(self, committed: Mapping[int, int]) -> BatchResult:
        """Drops what is before the offsets `committed`; returns the rest. What belongs to a group has no offset."""
        self._committed = committed
        self._alerts = self._after(self._alerts)
        self._failures = self._after(self._failures)
        self._failed = [record for record in self._failed if record.offset >= committed[record.partition]]
        return BatchResult(self._alerts, self._failed, self._failures)

    def _after(self, entries: Sequence[T]) -> list[T]:
        return [e for e in entries if e.position is None or e.position[1] >= self._committed[e.position[0]]]
