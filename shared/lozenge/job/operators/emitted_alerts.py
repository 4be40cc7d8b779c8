"""Remembers which alerts an aggregate has raised, so that each crossing is told once.

In update mode Spark emits a group again whenever it changes, and a new release counts the open windows
again (see `rewind`). The alert's id names window and band, so an id that was raised is not raised again. The
ids live in the detector's compacted state topic, written in the same transaction as the alerts.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from lozenge.contracts.partitioner import partition_of
from lozenge.job.commit.alert_encoder import AlertEncoder, Finding
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.state_topic import Stored, read_state
from lozenge.kafka.writers import Record

KEPT = timedelta(days=2)
"""How long after its window's end a crossing is remembered at least, on the clock of the events."""
LOOK_EVERY = timedelta(hours=1)
"""By so much that clock moves on before it looks through all of them for some to forget."""


class EmittedAlerts:
    """The ids raised and when each may be forgotten."""

    def __init__(self, writer: AlertEncoder, topic: str, partitions: int) -> None:
        self._writer, self._topic, self._partitions = writer, topic, partitions
        self._closes: dict[str, datetime] = {}
        self._newest: datetime | None = None
        self._looked: datetime | None = None
        self._changed: dict[str, datetime | None] = {}

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the remembered ids back; returns how many."""
        return self.recall(read_state(kafka, self._topic, range(self._partitions)))

    def recall(self, stored: Iterable[Stored]) -> int:
        """Remembers the ids that were read back; returns how many."""
        self._closes = _closes(stored)
        self._newest = max(self._closes.values(), default=None)
        return len(self._closes)

    def inherit(self, before: "EmittedAlerts") -> int:
        """Takes the memory of one that has ended, and what of it is to be written; returns the number of ids."""
        self._closes, self._newest, self._changed = before._closes, before._newest, before._changed
        return len(self._closes)

    def id_of(self, entity: str | None, occasion: str | None) -> str:
        """The id of the crossing's alert; "" if it has none."""
        return "" if entity is None or occasion is None else self._writer.id_of(entity, occasion)

    def remembers(self, alert_id: str) -> bool:
        """Whether it was raised."""
        return alert_id in self._closes

    def judge(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that are new; they are remembered."""
        new: list[Finding] = []
        for finding in findings:
            alert_id = self._writer.alert_id(finding)
            if alert_id in self._closes:
                continue
            self._closes[alert_id] = self._changed[alert_id] = finding.closes
            self._newest = max(self._newest or finding.closes, finding.closes)
            new.append(finding)
        if new:
            self._forget()
        return new

    def changes(self) -> list[Record]:
        """The state records that remember the new and forget the old, since it was last asked."""
        changed, self._changed = self._changed, {}
        return [self._record(alert_id, closes) for alert_id, closes in changed.items()]

    def take_over(self, kafka: KafkaSettings, held: Iterable[Finding]) -> list[Finding]:
        """Those of `held` that no predecessor has told; what it told is remembered too."""
        told = _closes(read_state(kafka, self._topic, range(self._partitions)))
        self._closes |= told
        for alert_id in told.keys() & self._changed.keys():
            del self._changed[alert_id]
        return [finding for finding in held if self._writer.alert_id(finding) not in told]

    def _forget(self) -> None:
        assert self._newest is not None
        if self._looked is not None and self._newest - self._looked < LOOK_EVERY:
            return
        self._looked = self._newest
        limit = self._newest - KEPT
        for alert_id in [i for i, closes in self._closes.items() if closes < limit]:
            del self._closes[alert_id]
            self._changed[alert_id] = None

    def _record(self, alert_id: str, closes: datetime | None) -> Record:
        key, value = alert_id.encode(), closes.isoformat().encode() if closes is not None else None
        return Record(self._topic, partition_of(key, self._partitions), key, value)


def _closes(stored: Iterable[Stored]) -> dict[str, datetime]:
    return {key.decode(): datetime.fromisoformat(value.decode()) for _, key, value in stored}
