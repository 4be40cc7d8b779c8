"""What judging one batch comes to."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from lozenge.job.commit.alert_encoder import FailedRecord, FailureWithoutRecord, Finding
from lozenge.metrics.app_metrics import Metrics


class BatchResult(NamedTuple):
    """What one batch comes to: alerts to raise, records to put aside, failures without a record."""

    findings: Sequence[Finding]
    poisoned: Sequence[FailedRecord] = ()
    unplaced: Sequence[FailureWithoutRecord] = ()

    def within(self, partitions: Collection[int]) -> "BatchResult":
        """What of it lies in these partitions of the input; what belongs to a group lies in none."""
        return BatchResult(
            [f for f in self.findings if f.place is not None and f.place[0] in partitions],
            [p for p in self.poisoned if p.partition in partitions],
            [u for u in self.unplaced if u.partition in partitions],
        )

    @property
    def failures(self) -> Sequence[FailedRecord | FailureWithoutRecord]:
        """What becomes a dead letter."""
        return [*self.poisoned, *self.unplaced]


def joined(parts: Sequence[BatchResult], put_aside: Sequence[FailedRecord]) -> BatchResult:
    """What several batches come to, with the records that were kept out of them."""
    return BatchResult(
        findings=[finding for part in parts for finding in part.findings],
        poisoned=[*put_aside, *(poisoned for part in parts for poisoned in part.poisoned)],
        unplaced=[unplaced for part in parts for unplaced in part.unplaced],
    )


def count(metrics: Metrics, judged: BatchResult) -> None:
    """Counts what has been told just now."""
    metrics.emitted(len(judged.findings))
    for failure in judged.failures:
        metrics.dead_letters(1, failure.stage)
    now = datetime.now(UTC)
    for finding in judged.findings:
        if finding.arrived is not None:
            metrics.latency((now - finding.arrived).total_seconds())
