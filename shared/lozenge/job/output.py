"""Alerts and dead letters as the records that leave a detector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lozenge import ids
from lozenge.avro import Codec
from lozenge.errors import DetectError
from lozenge.headers import cloud_event, dead_letter
from lozenge.job.identity import Identity
from lozenge.job.transaction import Record
from lozenge.partitions import partition_of

ALERT_TYPE = "lozenge.alert.v1"
NO_OFFSET = -1
"""In the headers of a dead letter that stands for no record."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An alert before the platform has signed it: what the detector said, and the occasion that makes its id."""

    entity: str
    occasion: str
    reason: str
    score: float
    event_time: datetime
    closes: datetime
    evidence: Sequence[str]
    values: Mapping[str, str]
    labels: Mapping[str, str]
    title: str | None = None
    severity: str | None = None
    trigger: tuple[int, int] | None = None
    traceparent: str | None = None
    arrived: datetime | None = None


@dataclass(frozen=True, slots=True)
class Misfired:
    """A timer on which the author's code raised, and its key's state as JSON. No record is to blame."""

    partition: int
    key: bytes
    state: bytes
    at: datetime
    error: Exception


class AlertWriter:
    """Turns findings into alert records of one detector, release and settings."""

    def __init__(self, identity: Identity, partitions: int, *, title: str, severity: str, digest: str) -> None:
        self._identity, self._partitions = identity, partitions
        self._title, self._severity, self._digest = title, severity, digest
        self._codec = Codec.of("alert")

    def alert_id(self, finding: Finding) -> str:
        """The same id for the same finding after any replay, restart or release."""
        return ids.alert_id(self._identity.detector, self._identity.key, finding.entity, finding.occasion)

    def record(self, finding: Finding, detected_at: datetime) -> Record:
        """The alert as a Kafka record, keyed by its entity."""
        alert_id = self.alert_id(finding)
        trigger = finding.trigger
        value = self._codec.encode(
            {
                "alert_id": alert_id,
                "detector": self._identity.detector,
                "release": self._identity.release,
                "settings_digest": self._digest,
                "model_version": None,
                "entity": {"type": self._identity.key, "id": finding.entity},
                "severity": finding.severity or self._severity,
                "score": finding.score,
                "title": finding.title or self._title,
                "reason": finding.reason,
                "evidence": {"event_ids": list(finding.evidence), "values": dict(finding.values)},
                "event_time": finding.event_time,
                "trigger": {"partition": trigger[0], "offset": trigger[1]} if trigger else None,
                "detected_at": detected_at,
                "labels": dict(finding.labels),
            }
        )
        key = finding.entity.encode()
        headers = cloud_event(
            id=alert_id,
            source=f"/detectors/{self._identity.detector}",
            type=ALERT_TYPE,
            subject=finding.entity,
            time=finding.event_time,
            traceparent=finding.traceparent or derived(alert_id),
        )
        return Record(self._identity.alerts, partition_of(key, self._partitions), key, value, headers)


def derived(alert_id: str) -> str:
    """The trace context of an alert that no single record triggered: a pure function of its id."""
    digits = alert_id.replace("-", "")
    return f"00-{digits}-{digits[:16]}-01"


def from_row(row: Any) -> Finding:
    """The finding in a row of `lozenge.alert` columns; times are aware UTC."""
    trigger = row["trigger"]
    return Finding(
        entity=row["entity"],
        occasion=row["occasion"],
        reason=row["reason"] or "",
        score=row["score"] if row["score"] is not None else 0.0,
        event_time=_utc(row["event_time"]),
        closes=_utc(row["closes"]),
        evidence=[e for e in row["evidence"] or () if e is not None],
        values={k: v if v is not None else "" for k, v in dict(row["values"] or ()).items()},
        labels={k: v if v is not None else "" for k, v in dict(row["labels"] or ()).items()},
        title=row["title"],
        severity=row["severity"],
        trigger=(trigger["partition"], trigger["offset"]) if trigger is not None else None,
        traceparent=row["traceparent"],
        arrived=_utc(row["arrived"]) if row["arrived"] is not None else None,
    )


def dead_letter_record(identity: Identity, original: Any, stage: str, error: BaseException) -> Record:
    """The dead letter of `original`, a confluent-kafka message, byte for byte and with the reason."""
    headers = dead_letter(
        original.headers() or (),
        topic=original.topic(),
        partition=original.partition(),
        offset=original.offset(),
        app=identity.app,
        stage=stage,
        error=error,
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, original.partition(), original.key(), original.value(), headers)


def misfire_record(identity: Identity, misfired: Misfired) -> Record:
    """The dead letter of a timer: the key, its state as JSON, and why."""
    headers = dead_letter(
        (),
        topic=identity.state,
        partition=misfired.partition,
        offset=NO_OFFSET,
        app=identity.app,
        stage="timer",
        error=DetectError(
            f"the timer at {misfired.at.isoformat()} of key {misfired.key.decode()}: "
            f"{type(misfired.error).__name__}: {misfired.error}"
        ),
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, misfired.partition, misfired.key, misfired.state, headers)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
