"""Deletes expired rows in bounded steps, so that other transactions run between two steps.

Numbered rows are in the order of time: a step reads them from the oldest on, and stops at the first page without an
expired one. Rows with another key are found by an index of their time. So no step reads the whole store.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sql

from lozenge_downstream.store.tables import (
    case_alerts,
    cases,
    deliveries,
    failed_attempts,
    inhibitors,
    is_closed,
    is_due,
    mutes,
    outbox,
    received_alerts,
    silences,
)

STEP = 2_000
"""Rows of one table that a step reads."""


class Retention:
    """Deletes once what ended before `before`, in seconds since the epoch. What is on its way is kept.

    A notification expires with its deliveries once the last of them has ended, a case once it has resolved. Then its
    alerts expire, and with them the ids by which duplicates are found. Rate-limited alerts are kept. A run that was
    interrupted starts from the beginning.
    """

    def __init__(self, before: float, step: int = STEP) -> None:
        self._before, self._step = before, step
        self._after = 0
        self._remaining: list[Callable[[sql.Connection], bool]] = [
            self._silences,
            self._inhibitors,
            lambda connection: self._history_of(connection, mutes),
            lambda connection: self._history_of(connection, failed_attempts),
            self._arrivals,
            self._cases,
            self._outbox,
        ]

    def step(self, connection: sql.Connection) -> bool:
        """Deletes some rows; returns whether there may be more."""
        if self._remaining and not self._remaining[-1](connection):
            self._remaining.pop()
            self._after = 0
        return bool(self._remaining)

    def _outbox(self, connection: sql.Connection) -> bool:
        of_it = deliveries.c.notification_id == outbox.c.id
        going = sql.exists().where(of_it, sql.or_(is_due, deliveries.c.due_at >= self._before))
        ended = (outbox.c.published_at < self._before, ~going)

        def delete(*window: sql.ColumnElement[bool]) -> None:
            ids = sql.select(outbox.c.id).where(*window, *ended)
            connection.execute(deliveries.delete().where(deliveries.c.notification_id.in_(ids)))
            connection.execute(outbox.delete().where(*window, *ended))

        return self._walk(connection, outbox, outbox.c.created_at, delete)

    def _cases(self, connection: sql.Connection) -> bool:
        resolved = sql.select(cases.c.case_id).where(is_closed, cases.c.resolves_at < self._before)
        resolved = resolved.order_by(cases.c.resolves_at).limit(self._step)
        key = [case_alerts.c.case_id, case_alerts.c.alert_id]
        joined = sql.select(*key).where(case_alerts.c.case_id.in_(resolved)).limit(self._step)
        if connection.execute(case_alerts.delete().where(sql.tuple_(*key).in_(joined))).rowcount == self._step:
            return True  # a case may have more alerts than one step deletes
        return connection.execute(cases.delete().where(cases.c.case_id.in_(resolved))).rowcount == self._step

    def _arrivals(self, connection: sql.Connection) -> bool:
        in_a_case = sql.exists().where(case_alerts.c.alert_id == received_alerts.c.alert_id)
        ended = (received_alerts.c.received_at < self._before, received_alerts.c.outcome != "rate limited", ~in_a_case)
        return self._walk(
            connection,
            received_alerts,
            received_alerts.c.received_at,
            lambda *window: connection.execute(received_alerts.delete().where(*window, *ended)),
        )

    def _history_of(self, connection: sql.Connection, table: sql.Table) -> bool:
        return self._walk(
            connection,
            table,
            table.c.at,
            lambda *window: connection.execute(table.delete().where(*window, table.c.at < self._before)),
        )

    def _inhibitors(self, connection: sql.Connection) -> bool:
        key = [inhibitors.c.rule, inhibitors.c.equal, inhibitors.c.two_sided]
        resolved = (
            sql.select(*key).where(inhibitors.c.until < self._before).order_by(inhibitors.c.until).limit(self._step)
        )
        return connection.execute(inhibitors.delete().where(sql.tuple_(*key).in_(resolved))).rowcount == self._step

    def _silences(self, connection: sql.Connection) -> bool:
        connection.execute(silences.delete().where(silences.c.ends_at < self._before))  # there are few
        return False

    def _walk(
        self, connection: sql.Connection, table: sql.Table, time: sql.Column[Any], delete: Callable[..., object]
    ) -> bool:
        """Calls `delete` on the next rows; returns whether there may be more expired ones."""
        query = sql.select(table.c.row, time).where(table.c.row > self._after).order_by(table.c.row).limit(self._step)
        rows = connection.execute(query).all()
        if not any(moment < self._before for _, moment in rows):
            return False
        delete(table.c.row > self._after, table.c.row <= rows[-1].row)
        self._after = rows[-1].row
        return len(rows) == self._step
