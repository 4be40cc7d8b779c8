"""Remembers which alerts an aggregate has raised, so that each crossing is told once.

In update mode Spark emits a group again whenever it changes, and a new release counts the open windows
again (see `rewind`). The alert's id names window and band, so an id that was raised is not raised again. The
ids live in the detector's compacted state topic, written in the same transaction as the alerts.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from lozenge.job.output import AlertWriter, Finding
from lozenge.job.state_topic import read_state
from lozenge.job.transaction import Record
from lozenge.kafka import KafkaSettings
from lozenge.partitions import partition_of

KEPT = timedelta(days=2)
"""How long after its window's end a crossing is remembered, on the clock of the events."""


class Crossings:
    """The ids raised and when each may be forgotten."""

    def __init__(self, writer: AlertWriter, topic: str, partitions: int) -> None:
        self._writer, self._topic, self._partitions = writer, topic, partitions
        self._closes: dict[str, datetime] = {}
        self._newest: datetime | None = None

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the remembered ids back; returns how many."""
        self._closes = {
            key.decode(): datetime.fromisoformat(value.decode())
            for _, key, value in read_state(kafka, self._topic, self._partitions)
        }
        self._newest = max(self._closes.values(), default=None)
        return len(self._closes)

    def judge(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[Record]]:
        """The findings that are new, and the state records that remember them and forget the old."""
        new: list[Finding] = []
        records: list[Record] = []
        for finding in findings:
            alert_id = self._writer.alert_id(finding)
            if alert_id in self._closes:
                continue
            self._closes[alert_id] = finding.closes
            self._newest = max(self._newest or finding.closes, finding.closes)
            new.append(finding)
            records.append(self._record(alert_id, finding.closes.isoformat().encode()))
        if new:
            records.extend(self._forget())
        return new, records

    def _forget(self) -> Iterator[Record]:
        assert self._newest is not None
        limit = self._newest - KEPT
        for alert_id in [i for i, closes in self._closes.items() if closes < limit]:
            del self._closes[alert_id]
            yield self._record(alert_id, None)

    def _record(self, alert_id: str, value: bytes | None) -> Record:
        key = alert_id.encode()
        return Record(self._topic, partition_of(key, self._partitions), key, value)
