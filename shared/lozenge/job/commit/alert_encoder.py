"""Alerts as Kafka records."""

from datetime import datetime

from lozenge.contracts.alert import ALERT_TYPE, OWNER
from lozenge.contracts.avro import Codec
from lozenge.contracts.headers import cloud_event
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.detector.definition import Settings
from lozenge.detector.manifest import Manifest
from lozenge.job.batch_result import DraftAlert
from lozenge.job.identity import Identity


class AlertEncoder:
    """Turns draft alerts into the records of one detector, release and settings."""

    def __init__(self, identity: Identity, declaration: Manifest, settings: Settings) -> None:
        self._identity, self._declaration, self._digest = identity, declaration, settings.digest
        self._codec = Codec.of("alert")

    def alert_id(self, draft: DraftAlert) -> str:
        """The draft's id: the same after any replay, restart or release."""
        return self._identity.alert_id(draft.entity, draft.dedup_key)

    def record(self, draft: DraftAlert, detected_at: datetime) -> Record:
        """The alert as a Kafka record, keyed by its entity."""
        alert_id, alert = self.alert_id(draft), draft.alert
        trigger = draft.trigger
        value = self._codec.encode(
            {
                "alert_id": alert_id,
                "detector": self._identity.detector,
                "release": self._identity.release,
                "settings_digest": self._digest,
                "model_version": None,
                "entity": {"type": self._identity.key, "id": draft.entity},
                "severity": alert.severity or self._declaration.severity,
                "score": float(alert.score),
                "title": alert.title or self._declaration.title,
                "reason": alert.reason,
                "evidence": {
                    "event_ids": [e for e in alert.evidence if e is not None],
                    "values": {name: str(value) for name, value in alert.values.items()},
                },
                "event_time": draft.event_time,
                "trigger": {"partition": trigger[0], "offset": trigger[1]} if trigger else None,
                "detected_at": detected_at,
                "labels": {n: text for n, text in alert.labels.items() if n != OWNER}
                | {OWNER: self._declaration.owner},
            }
        )
        key = draft.entity.encode()
        headers = cloud_event(
            id=alert_id,
            source=f"/detectors/{self._identity.detector}",
            type=ALERT_TYPE,
            subject=draft.entity,
            time=draft.event_time,
            traceparent=draft.traceparent or derived(alert_id),
        )
        return Record(self._identity.alerts, partition_of(key, self._identity.topics.partitions), key, value, headers)


def derived(alert_id: str) -> str:
    """The trace context of an alert that no single record triggered: a pure function of its id."""
    digits = alert_id.replace("-", "")
    return f"00-{digits}-{digits[:16]}-01"
