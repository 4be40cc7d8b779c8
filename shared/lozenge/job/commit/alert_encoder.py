"""Alerts and dead letters as the records that leave a detector."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lozenge.contracts import ids, topics
from lozenge.contracts.avro import Codec
from lozenge.contracts.headers import cloud_event, dead_letter
from lozenge.contracts.partitioner import partition_of
from lozenge.detector.definition import Settings
from lozenge.detector.events import Alert
from lozenge.detector.manifest import Manifest
from lozenge.errors import DecodeError, EncodeError, Poison
from lozenge.job.identity import Identity
from lozenge.kafka.writers import Record

ALERT_TYPE = "lozenge.alert.v1"
OWNER = "owner"
"""The label of every alert that says whose detector raised it."""
NO_OFFSET = -1
"""In the headers of a dead letter that stands for no record."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An alert before the platform has signed it: what the detector said, and the occasion that makes its id.

    `place` is the record that was being judged, also where it triggered nothing but a timer; None for a group.
    """

    alert: Alert
    entity: str
    occasion: str
    event_time: datetime
    closes: datetime
    trigger: tuple[int, int] | None = None
    place: tuple[int, int] | None = None
    traceparent: str | None = None
    arrived: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that cannot be judged, and why: the Poison that is told, or what else was raised on it."""

    partition: int
    offset: int
    error: Exception

    @property
    def place(self) -> tuple[int, int]:
        """The record's partition and offset."""
        return self.partition, self.offset

    @property
    def stage(self) -> str:
        """Where it failed: decode, detect or encode."""
        match self.error:
            case DecodeError():
                return "decode"
            case EncodeError():
                return "encode"
            case _:
                return "detect"


@dataclass(frozen=True, slots=True)
class FailureWithoutRecord:
    """A failure that no single record is to blame for: of a timer, or of a group's alert.

    `cause` names it for a person, `value` is what there was as JSON: the key's state, or the group's row.
    `place` is the record that was being judged; None for a group.
    """

    stage: str
    cause: str
    partition: int
    key: bytes | None
    value: bytes
    error: Poison
    place: tuple[int, int] | None = None


class AlertEncoder:
    """Turns findings into alert records of one detector, release and settings."""

    def __init__(self, identity: Identity, declaration: Manifest, settings: Settings) -> None:
        self._identity, self._declaration, self._digest = identity, declaration, settings.digest
        self._codec = Codec.of("alert")

    def alert_id(self, finding: Finding) -> str:
        """The same id for the same finding after any replay, restart or release."""
        return self.id_of(finding.entity, finding.occasion)

    def id_of(self, entity: str, occasion: str) -> str:
        """The id of whatever is found of this entity on this occasion."""
        return ids.alert_id(self._identity.detector, self._identity.key, entity, occasion)

    def record(self, finding: Finding, detected_at: datetime) -> Record:
        """The alert as a Kafka record, keyed by its entity."""
        alert_id, alert = self.alert_id(finding), finding.alert
        trigger = finding.trigger
        value = self._codec.encode(
            {
                "alert_id": alert_id,
                "detector": self._identity.detector,
                "release": self._identity.release,
                "settings_digest": self._digest,
                "model_version": None,
                "entity": {"type": self._identity.key, "id": finding.entity},
                "severity": alert.severity or self._declaration.severity,
                "score": float(alert.score),
                "title": alert.title or self._declaration.title,
                "reason": alert.reason,
                "evidence": {
                    "event_ids": [e for e in alert.evidence if e is not None],
                    "values": {name: str(value) for name, value in alert.values.items()},
                },
                "event_time": finding.event_time,
                "trigger": {"partition": trigger[0], "offset": trigger[1]} if trigger else None,
                "detected_at": detected_at,
                "labels": {n: text for n, text in alert.labels.items() if n != OWNER}
                | {OWNER: self._declaration.owner},
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
        return Record(self._identity.alerts, partition_of(key, topics.EVENT_PARTITIONS), key, value, headers)


def derived(alert_id: str) -> str:
    """The trace context of an alert that no single record triggered: a pure function of its id."""
    digits = alert_id.replace("-", "")
    return f"00-{digits}-{digits[:16]}-01"


def from_row(row: Any) -> Finding:
    """The finding in a row of `lozenge.alert` columns; times are aware UTC. Raises EncodeError."""
    trigger = row["trigger"]
    place = (trigger["partition"], trigger["offset"]) if trigger is not None else None
    if missing := [name for name in ("entity", "event_time", "occasion", "closes") if row[name] is None]:
        raise EncodeError(f"the alert cannot be written: its {', '.join(missing)} is null")
    try:
        alert = Alert(
            reason=row["reason"] or "",
            score=row["score"] if row["score"] is not None else 0.0,
            evidence=row["evidence"] or (),
            values=_texts(row["values"]),
            title=row["title"],
            severity=row["severity"],
            labels=_texts(row["labels"]),
        )
    except ValueError as error:
        raise EncodeError(str(error)) from error
    return Finding(
        alert,
        entity=row["entity"],
        occasion=row["occasion"],
        event_time=_utc(row["event_time"]),
        closes=_utc(row["closes"]),
        trigger=place,
        place=place,
        traceparent=row["traceparent"],
        arrived=_utc(row["arrived"]) if row["arrived"] is not None else None,
    )


def dead_letter_record(identity: Identity, original: Any, poisoned: FailedRecord) -> Record:
    """The dead letter of `original`, a confluent-kafka message, byte for byte and with the reason."""
    headers = dead_letter(
        original.headers() or (),
        topic=original.topic(),
        partition=original.partition(),
        offset=original.offset(),
        app=identity.app,
        stage=poisoned.stage,
        error=poisoned.error,
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, original.partition(), original.key(), original.value(), headers)


def unplaced_record(identity: Identity, unplaced: FailureWithoutRecord) -> Record:
    """The dead letter of a failure without a record: its key, what there was as JSON, and why."""
    headers = dead_letter(
        (),
        topic=identity.state,
        partition=unplaced.partition,
        offset=NO_OFFSET,
        app=identity.app,
        stage=unplaced.stage,
        error=unplaced.error,
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, unplaced.partition, unplaced.key, unplaced.value, headers)


def _texts(pairs: Any) -> Mapping[str, str]:
    """A map column, which Arrow hands over as pairs."""
    return {name: text if text is not None else "" for name, text in dict(pairs or ()).items()}


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
