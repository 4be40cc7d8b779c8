"""Remembers which alerts an aggregate has emitted, so that each one is emitted once.

In update mode Spark emits a group's rows again whenever the group changes, and a new release counts the open windows
again. The alert id names the window and the band, so an id that was emitted is not emitted again. The ids are in the
detector's state topic, written in the transaction of the alerts.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.detector.stored_state import check_alert_id, closing_time
from lozenge.job.batch_result import DraftAlert
from lozenge.job.identity import Identity
from lozenge.kafka.compacted_topic import Stored, read_latest
from lozenge.kafka.settings import KafkaSettings

RETENTION = timedelta(days=2)
"""How long after the end of its window an alert is remembered at least, in event time."""
SCAN_INTERVAL = timedelta(hours=1)
"""How much event time passes between two scans for expired ids; a scan at each alert was half of Python's time."""


class EmittedAlerts:
    """The ids of emitted alerts, each with the end of its window."""

    def __init__(self, identity: Identity, partitions: int) -> None:
        self._identity, self._topic, self._partitions = identity, identity.state, partitions
        self._closes: dict[str, datetime] = {}
        self._newest: datetime | None = None
        self._scanned: datetime | None = None
        self._changed: dict[str, datetime | None] = {}

    def __contains__(self, alert_id: str) -> bool:
        """Whether the alert was emitted."""
        return alert_id in self._closes

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the ids from the state topic; returns how many."""
        return self.load(read_latest(kafka, self._topic, range(self._partitions), check=check_alert_id))

    def load(self, stored: Iterable[Stored]) -> int:
        """Takes ids that were read already; returns how many."""
        self._closes = _closes(stored)
        self._newest = max(self._closes.values(), default=None)
        return len(self._closes)

    def adopt_state(self, previous: "EmittedAlerts") -> int:
        """Takes the ids of `previous`, which has stopped, and its unwritten changes; returns the number of ids."""
        self._closes, self._newest, self._changed = previous._closes, previous._newest, previous._changed
        return len(self._closes)

    def id_of(self, entity: str | None, dedup_key: str | None) -> str:
        """The alert id of a row; "" if the row makes no alert."""
        return "" if entity is None or dedup_key is None else self._identity.alert_id(entity, dedup_key)

    def add(self, drafts: Iterable[DraftAlert]) -> list[DraftAlert]:
        """Adds the drafts that are new, and returns them."""
        new: list[DraftAlert] = []
        for draft in drafts:
            alert_id = self._id(draft)
            if alert_id in self._closes:
                continue
            self._closes[alert_id] = self._changed[alert_id] = draft.closes
            self._newest = max(self._newest or draft.closes, draft.closes)
            new.append(draft)
        if new:
            self._expire()
        return new

    def state_changes(self) -> list[Record]:
        """The state records of ids that were added or have expired since the last call."""
        changed, self._changed = self._changed, {}
        return [self._record(alert_id, closes) for alert_id, closes in changed.items()]

    def cut_over(self, kafka: KafkaSettings, buffered: Iterable[DraftAlert]) -> list[DraftAlert]:
        """Those of the `buffered` alerts that the replaced job has not emitted; adds the ids that it has."""
        emitted = _closes(read_latest(kafka, self._topic, range(self._partitions), check=check_alert_id))
        self._closes |= emitted
        for alert_id in emitted.keys() & self._changed.keys():
            del self._changed[alert_id]
        return [draft for draft in buffered if self._id(draft) not in emitted]

    def _id(self, draft: DraftAlert) -> str:
        return self._identity.alert_id(draft.entity, draft.dedup_key)

    def _expire(self) -> None:
        assert self._newest is not None
        if self._scanned is not None and self._newest - self._scanned < SCAN_INTERVAL:
            return
        self._scanned = self._newest
        limit = self._newest - RETENTION
        for alert_id in [i for i, closes in self._closes.items() if closes < limit]:
            del self._closes[alert_id]
            self._changed[alert_id] = None

    def _record(self, alert_id: str, closes: datetime | None) -> Record:
        key, value = alert_id.encode(), closes.isoformat().encode() if closes is not None else None
        return Record(self._topic, partition_of(key, self._partitions), key, value)


def _closes(stored: Iterable[Stored]) -> dict[str, datetime]:
    return {key.decode(): closing_time(value) for _, key, value in stored}
