"""Forgetting what came to its end, in bounded steps: other writers get their turn between two of them.

Rows that count up lie in the order of time: they are gone through from the oldest on, and left to lie from where
nothing is old any more. What has another key is found by an index of its time. So no step reads the whole store.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sql

from lozenge_downstream.store.tables import (
    arrivals,
    cases,
    deliveries,
    failures,
    is_closed,
    is_due,
    members,
    mutes,
    outbox,
    silences,
    sources,
)

STEP = 2_000
"""Rows of one table that a step looks at."""


class Retention:
    """Goes once through what ended before `before`, in seconds since the epoch; what is on its way stays.

    A notification goes with its deliveries when the last of them has ended, a case when it is over, its alerts after
    it, and so does the memory that makes their repeats collapse. Parked alerts stay. An interrupted one is begun anew.
    """

    def __init__(self, before: float, step: int = STEP) -> None:
        self._before, self._step = before, step
        self._after = 0
        self._rest: list[Callable[[sql.Connection], bool]] = [
            self._silences,
            self._sources,
            lambda connection: self._told_of(connection, mutes),
            lambda connection: self._told_of(connection, failures),
            self._arrivals,
            self._cases,
            self._outbox,
        ]

    def step(self, connection: sql.Connection) -> bool:
        """Forgets some; whether there may be more."""
        if self._rest and not self._rest[-1](connection):
            self._rest.pop()
            self._after = 0
        return bool(self._rest)

    def _outbox(self, connection: sql.Connection) -> bool:
        of_it = deliveries.c.notification_id == outbox.c.id
        going = sql.exists().where(of_it, sql.or_(is_due, deliveries.c.due_at >= self._before))
        ended = (outbox.c.published_at < self._before, ~going)

        def forget(*window: sql.ColumnElement[bool]) -> None:
            ids = sql.select(outbox.c.id).where(*window, *ended)
            connection.execute(deliveries.delete().where(deliveries.c.notification_id.in_(ids)))
            connection.execute(outbox.delete().where(*window, *ended))

        return self._walk(connection, outbox, outbox.c.created_at, forget)

    def _cases(self, connection: sql.Connection) -> bool:
        over = sql.select(cases.c.case_id).where(is_closed, cases.c.over_at < self._before)
        over = over.order_by(cases.c.over_at).limit(self._step)
        key = [members.c.case_id, members.c.alert_id]
        joined = sql.select(*key).where(members.c.case_id.in_(over)).limit(self._step)
        if connection.execute(members.delete().where(sql.tuple_(*key).in_(joined))).rowcount == self._step:
            return True  # a case may have more alerts than a step takes
        return connection.execute(cases.delete().where(cases.c.case_id.in_(over))).rowcount == self._step

    def _arrivals(self, connection: sql.Connection) -> bool:
        in_a_case = sql.exists().where(members.c.alert_id == arrivals.c.alert_id)
        ended = (arrivals.c.received_at < self._before, arrivals.c.outcome != "parked", ~in_a_case)
        return self._walk(
            connection,
            arrivals,
            arrivals.c.received_at,
            lambda *window: connection.execute(arrivals.delete().where(*window, *ended)),
        )

    def _told_of(self, connection: sql.Connection, table: sql.Table) -> bool:
        return self._walk(
            connection,
            table,
            table.c.at,
            lambda *window: connection.execute(table.delete().where(*window, table.c.at < self._before)),
        )

    def _sources(self, connection: sql.Connection) -> bool:
        key = [sources.c.rule, sources.c.equal, sources.c.two_sided]
        over = sql.select(*key).where(sources.c.until < self._before).order_by(sources.c.until).limit(self._step)
        return connection.execute(sources.delete().where(sql.tuple_(*key).in_(over))).rowcount == self._step

    def _silences(self, connection: sql.Connection) -> bool:
        connection.execute(silences.delete().where(silences.c.ends_at < self._before))  # people make few
        return False

    def _walk(
        self, connection: sql.Connection, table: sql.Table, time: sql.Column[Any], forget: Callable[..., object]
    ) -> bool:
        """Has `forget` look at the next rows; whether there are more of which any may be old."""
        query = sql.select(table.c.row, time).where(table.c.row > self._after).order_by(table.c.row).limit(self._step)
        rows = connection.execute(query).all()
        if not any(moment < self._before for _, moment in rows):
            return False
        forget(table.c.row > self._after, table.c.row <= rows[-1].row)
        self._after = rows[-1].row
        return len(rows) == self._step
