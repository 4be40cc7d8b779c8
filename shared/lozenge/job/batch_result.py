"""The result of one batch as values: draft alerts, failed records, failures without a record."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from lozenge.detector.events import Alert
from lozenge.errors import DecodeError, EncodeError, Poison
from lozenge.metrics.app_metrics import JobMetrics


@dataclass(frozen=True, slots=True)
class DraftAlert:
    """An alert as the detector made it, before the platform adds its id, release and time.

    `dedup_key` makes the alert's id, together with the entity. `position` is the partition and offset of the record
    that was processed, also where only a timer fired; it is None for a group. `trigger` is the position of the event
    that caused the alert. `closes` is the end of the group's window.
    """

    alert: Alert
    entity: str
    dedup_key: str
    event_time: datetime
    closes: datetime
    trigger: tuple[int, int] | None = None
    position: tuple[int, int] | None = None
    traceparent: str | None = None
    arrived: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that cannot be processed. `error` is the Poison to report, or what was raised on the record."""

    partition: int
    offset: int
    error: Exception

    @property
    def position(self) -> tuple[int, int]:
        """The record's partition and offset."""
        return self.partition, self.offset

    @property
    def stage(self) -> str:
        """The stage at which it failed: decode, detect or encode."""
        match self.error:
            case DecodeError():
                return "decode"
            case EncodeError():
                return "encode"
            case _:
                return "detect"


@dataclass(frozen=True, slots=True)
class FailureWithoutRecord:
    """A failure of a timer or of a group's alert, which no single record causes.

    `cause` names it for people. `value` is JSON: the key's state, or the group's row. `position` is the partition and
    offset of the record that was processed; it is None for a group.
    """

    stage: str
    cause: str
    partition: int
    key: bytes | None
    value: bytes
    error: Poison
    position: tuple[int, int] | None = None


class BatchResult(NamedTuple):
    """What an operator makes of one batch: alerts to emit, and failures that become dead letters."""

    alerts: Sequence[DraftAlert]
    failed_records: Sequence[FailedRecord] = ()
    failures_without_record: Sequence[FailureWithoutRecord] = ()

    def within(self, partitions: Collection[int]) -> "BatchResult":
        """The part that belongs to these input partitions. A group belongs to none."""
        return BatchResult(
            [a for a in self.alerts if a.position is not None and a.position[0] in partitions],
            [f for f in self.failed_records if f.partition in partitions],
            [f for f in self.failures_without_record if f.partition in partitions],
        )

    @property
    def failures(self) -> Sequence[FailedRecord | FailureWithoutRecord]:
        """Everything that becomes a dead letter."""
        return [*self.failed_records, *self.failures_without_record]


def joined(results: Sequence[BatchResult], excluded: Sequence[FailedRecord]) -> BatchResult:
    """One result of several batches, and of the records that were `excluded` from them."""
    return BatchResult(
        alerts=[alert for result in results for alert in result.alerts],
        failed_records=[*excluded, *(record for result in results for record in result.failed_records)],
        failures_without_record=[failure for result in results for failure in result.failures_without_record],
    )


def first_reached(
    records: Iterable[FailedRecord], begins: Mapping[int, int], ends: Mapping[int, int]
) -> list[FailedRecord]:
    """Those of `records` that lie in a batch, which spans the offsets from `begins` to before `ends`."""
    return [r for r in records if r.partition in ends and begins[r.partition] <= r.offset < ends[r.partition]]


def count(metrics: JobMetrics, published: BatchResult) -> None:
    """Counts alerts and dead letters at the moment of their publication.

    The latency of an alert runs from the arrival of its raw record. An alert of a group or a timer has none, so it runs
    from the alert's event time: that of the group's latest event, or the time at which the timer was due.
    """
    metrics.emitted(len(published.alerts))
    for failure in published.failures:
        metrics.dead_letters(1, failure.stage)
    now = datetime.now(UTC)
    for alert in published.alerts:
        metrics.latency((now - (alert.arrived or alert.event_time)).total_seconds())
