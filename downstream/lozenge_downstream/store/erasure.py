"""Erases a subject from the store: what names it is deleted, or loses the word, in one transaction.

An alert keeps its id, by which duplicates are found, and becomes a dropped one without content. A case whose group
names the subject goes with its notifications. Rows that others need as well lose the word alone. What is on its way to
Kafka or to a channel is left to a second run: numbers of records have no gaps, and messages of others are not lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql

from lozenge.protocol.data_subject import DataSubject
from lozenge_downstream.model import Classification
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import CHUNK
from lozenge_downstream.store.tables import (
    case_alerts,
    cases,
    deliveries,
    disabled_channels,
    failed_attempts,
    feedback,
    inhibitors,
    is_due,
    mutes,
    outbox,
    received_alerts,
    routing_versions,
    silences,
)

REASON = "erased"
PAGE = 1_000
_TEXTS = (
    (received_alerts, (received_alerts.c.reason, received_alerts.c.body)),
    (mutes, (mutes.c.reason,)),
    (case_alerts, (case_alerts.c.muted,)),
    (silences, (silences.c.reason,)),
    (deliveries, (deliveries.c.error,)),
    (failed_attempts, (failed_attempts.c.error,)),
    (disabled_channels, (disabled_channels.c.reason,)),
    (feedback, (feedback.c.note,)),
    (routing_versions, (routing_versions.c.text, routing_versions.c.problems)),
)
"""The texts of rows that others need as well."""


@dataclass(frozen=True)
class Erased:
    """How many rows of each kind were deleted or changed, and how many records are `on_their_way` still."""

    removed: Mapping[str, int]
    on_their_way: int


def erase(connection: sql.Connection, subject: DataSubject) -> Erased:
    """Erases a subject in a transaction, which must be exclusive; a second call finds what was on its way then."""
    return _Erasure(connection, subject).erase()


class _Erasure:
    def __init__(self, connection: sql.Connection, subject: DataSubject) -> None:
        self._connection, self._subject = connection, subject

    def erase(self) -> Erased:
        alerts = self._alerts()
        groups = sorted({*self._groups(), *self._emptied(alerts)})
        _delete(self._connection, case_alerts, case_alerts.c.case_id, groups)
        for table in (case_alerts, mutes, inhibitors):
            _delete(self._connection, table, table.c.alert_id, alerts)
        notifications, on_their_way = self._outbox(groups)
        removed = {
            "alerts": self._forgotten(alerts),
            "cases": _delete(self._connection, cases, cases.c.case_id, groups),
            "notifications": notifications,
            "feedback": self._without_notes(alerts),
            "silences": self._silences(),
            "texts of others": sum(self._masked(table, columns) for table, columns in _TEXTS),
        }
        return Erased(removed, on_their_way)

    def _alerts(self) -> list[str]:
        """The ids of the alerts about the subject."""
        found = (decode_alert(row.body) for row in self._naming(received_alerts, received_alerts.c.body))
        return sorted({alert.id for alert in found if alert.subject == self._subject.name})

    def _groups(self) -> list[str]:
        """The cases whose group is the subject's."""
        return [row.case_id for row in self._naming(cases, cases.c.group)]

    def _emptied(self, alerts: Sequence[str]) -> set[str]:
        """The cases that have no alert of another entity."""
        touched, kept, gone = set[str](), set[str](), {*alerts}
        members = sql.select(case_alerts.c.case_id, case_alerts.c.alert_id)
        for part in _parts(alerts):
            mine = self._connection.execute(members.where(case_alerts.c.alert_id.in_(part)))
            touched |= {row.case_id for row in mine}
        for part in _parts(sorted(touched)):
            rows = self._connection.execute(members.where(case_alerts.c.case_id.in_(part)))
            kept |= {row.case_id for row in rows if row.alert_id not in gone}
        return touched - kept

    def _forgotten(self, alerts: Sequence[str]) -> int:
        changed = {"body": None, "outcome": Classification.DROPPED.value, "reason": REASON}
        statement = received_alerts.update().where(received_alerts.c.reason != REASON).values(changed)
        return _each(self._connection, statement, received_alerts.c.alert_id, alerts)

    def _without_notes(self, alerts: Sequence[str]) -> int:
        statement = feedback.update().where(feedback.c.note != "").values(note="")
        return _each(self._connection, statement, feedback.c.alert_id, alerts)

    def _outbox(self, groups: Sequence[str]) -> tuple[int, int]:
        """Deletes records, with their deliveries; returns how many, and how many are on their way still."""
        gone, left = list[str](), 0
        for row in self._records(groups):
            of_others = row.case_id not in groups
            if row.published_at is None or (of_others and self._is_due(row.id)):
                left += 1
            else:
                gone.append(row.id)
        for table in (deliveries, failed_attempts):
            _delete(self._connection, table, table.c.notification_id, gone)
        return _delete(self._connection, outbox, outbox.c.id, gone), left

    def _records(self, groups: Sequence[str]) -> Iterator[Any]:
        """The records of these cases, and those that name the subject; without a text they are looked at as bytes."""
        value = self._subject.value
        likely = sql.or_(
            outbox.c.body.contains(value, autoescape=True),
            outbox.c.headers.contains(value, autoescape=True),
            outbox.c.body.is_(None),
            outbox.c.case_id.in_(groups),
        )
        query, after = sql.select(outbox).where(likely).order_by(outbox.c.row).limit(PAGE), 0
        while rows := self._connection.execute(query.where(outbox.c.row > after)).all():
            after = rows[-1].row
            yield from (row for row in rows if row.case_id in groups or self._names(row))

    def _names(self, record: Any) -> bool:
        texts = (record.body or "", record.headers)
        return any(map(self._subject.is_in, texts)) or any(
            self._subject.is_in_bytes(data or b"") for data in (record.key, record.value)
        )

    def _is_due(self, notification: str) -> bool:
        due = sql.select(sql.exists().where(is_due, deliveries.c.notification_id == notification))
        return bool(self._connection.execute(due).scalar())

    def _silences(self) -> int:
        named = [row.silence_id for row in self._naming(silences, silences.c.matchers)]
        return _delete(self._connection, silences, silences.c.silence_id, named)

    def _masked(self, table: sql.Table, columns: Sequence[sql.Column[Any]]) -> int:
        rows = [row._mapping for column in columns for row in self._naming(table, column)]
        named = {tuple(row[key.name] for key in table.primary_key): row for row in rows}
        for key, row in named.items():
            mine = [column == value for column, value in zip(table.primary_key, key, strict=True)]
            texts = {column.name: row[column.name] for column in columns if row[column.name] is not None}
            changed = {name: self._subject.erased_from(text) for name, text in texts.items()}
            self._connection.execute(table.update().where(*mine).values(changed))
        return len(named)

    def _naming(self, table: sql.Table, column: sql.Column[Any]) -> Iterator[Any]:
        """The rows whose text in a column names the subject."""
        likely = sql.select(table).where(column.contains(self._subject.value, autoescape=True))
        rows = self._connection.execute(likely).all()
        return (row for row in rows if self._subject.is_in(row._mapping[column.name]))


def _delete(connection: sql.Connection, table: sql.Table, column: sql.Column[Any], values: Sequence[str]) -> int:
    return _each(connection, table.delete(), column, values)


def _each(connection: sql.Connection, statement: Any, column: sql.Column[Any], values: Sequence[str]) -> int:
    """Executes a statement for the rows whose `column` is among some values; returns how many there were."""
    return sum(connection.execute(statement.where(column.in_(part))).rowcount for part in _parts(values))


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """The values in parts that fit into one statement."""
    return (values[begin : begin + CHUNK] for begin in range(0, len(values), CHUNK))
