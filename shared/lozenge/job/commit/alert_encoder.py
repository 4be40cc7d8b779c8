"""Alerts as Kafka records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lozenge.contracts.alert import ALERT_TYPE, OWNER
from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import is_blank
from lozenge.contracts.headers import cloud_event
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.detector.manifest import Manifest
from lozenge.job.alert_fields import Fields, Source, record_fields, source_of
from lozenge.job.batch_result import DraftAlert
from lozenge.job.identity import Identity
from lozenge.protocol.coverage import Versions


class AlertEncoder:
    """Turns draft alerts into the records of one detector and release, with its settings and tables."""

    def __init__(self, identity: Identity, declaration: Manifest, versions: Versions) -> None:
        self._identity, self._owner = identity, declaration.owner
        self._fields = record_fields(identity, declaration, versions)
        self._codec = Codec.of("alert")

    def alert_id(self, draft: DraftAlert) -> str:
        """The draft's id: the same after any replay, restart or release."""
        return self._identity.alert_id(draft.entity, draft.dedup_key)

    def record(self, draft: DraftAlert, detected_at: datetime) -> Record:
        """The alert as a Kafka record, keyed by its entity."""
        alert_id, alert = self.alert_id(draft), draft.alert
        columns = {
            "alert_id": alert_id,
            "entity": draft.entity,
            "severity": alert.severity,
            "score": float(alert.score),
            "title": alert.title,
            "reason": alert.reason,
            "evidence": [event_id for event_id in alert.evidence if event_id is not None],
            "values": {name: str(value) for name, value in alert.values.items()},
            "event_time": draft.event_time,
            "trigger": {"partition": draft.trigger[0], "offset": draft.trigger[1]} if draft.trigger else None,
            "detected_at": detected_at,
            "labels": {n: text for n, text in alert.labels.items() if n != OWNER} | {OWNER: self._owner},
        }
        value = self._codec.encode(filled(self._fields, columns))
        key = draft.entity.encode()
        headers = cloud_event(
            id=alert_id,
            source=source_of(self._identity),
            type=ALERT_TYPE,
            subject=draft.entity,
            time=draft.event_time,
            traceparent=draft.traceparent or derived(alert_id),
        )
        return Record(self._identity.alerts, partition_of(key, self._identity.topics.partitions), key, value, headers)


def filled(fields: Fields, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `fields`, given those of the alert's `columns`."""
    return {
        name: _value(source, columns) if isinstance(source, Source) else filled(source, columns)
        for name, source in fields.items()
    }


def _value(source: Source, columns: Mapping[str, Any]) -> Any:
    found = columns[source.column] if source.column else None
    if source.constant is not None and isinstance(found, str) and is_blank(found):
        return source.constant
    return source.constant if found is None or found == "" else found


def derived(alert_id: str) -> str:
    """The trace context of an alert that no single record triggered: a pure function of its id."""
    digits = alert_id.replace("-", "")
    return f"00-{digits}-{digits[:16]}-01"
