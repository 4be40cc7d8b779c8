"""Cases, the alerts in them, and why these are muted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import sqlalchemy as sql

from lozenge_downstream.model import Case, PublishedAlert
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import among, found, insert
from lozenge_downstream.store.tables import (
    case_alerts,
    cases,
    deliveries,
    is_open,
    is_waiting,
    mutes,
    outbox,
    received_alerts,
)

_OPEN = among(sql.select(cases).where(is_open), cases.c.key)
_IS_DUE = (is_open, cases.c.next_evaluation_at <= sql.bindparam("now"))
_ARE_DUE = sql.select(sql.exists().where(*_IS_DUE))
_DUE = sql.select(cases).where(*_IS_DUE).order_by(cases.c.next_evaluation_at).limit(sql.bindparam("most"))
_IN_CASE = case_alerts.c.case_id == sql.bindparam("case")
_WAITING = (
    sql.select(case_alerts.c.alert_id, case_alerts.c.muted, received_alerts.c.body)
    .join(
        received_alerts,
        sql.and_(received_alerts.c.alert_id == case_alerts.c.alert_id, received_alerts.c.body.is_not(None)),
    )
    .where(_IN_CASE, is_waiting)
    .order_by(received_alerts.c.row)
)
_NOTIFIED = (
    sql.select(received_alerts.c.body)
    .join(case_alerts, received_alerts.c.alert_id == case_alerts.c.alert_id)
    .where(_IN_CASE, ~is_waiting, received_alerts.c.body.is_not(None))
    .order_by(received_alerts.c.row.desc())
    .limit(sql.bindparam("most"))
)
_NEVER_CHANGED = ("case_id", "route", "key", "group", "opened_at")
_UPDATE = (
    cases.update()
    .where(cases.c.case_id == sql.bindparam("new_case_id"))
    .values({c.name: sql.bindparam(f"new_{c.name}") for c in cases.c if c.name not in _NEVER_CHANGED})
)


class Waiting(NamedTuple):
    """The alerts of a case that were never notified, and why the last evaluation muted some of them."""

    alerts: list[PublishedAlert]
    muted: dict[str, str]


def key_of(route: str, group: Mapping[str, str]) -> str:
    """The key by which an open case is found."""
    return sha256(json.dumps([route, sorted(group.items())]).encode()).hexdigest()[:32]


class Cases:
    """The cases of one transaction, which must be exclusive."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def open(self, keys: Sequence[str]) -> dict[str, Case]:
        """The open cases among `keys`."""
        return {row.key: case_of(row) for row in found(self._connection, _OPEN, keys)}

    def are_due(self) -> bool:
        """Whether the evaluation of any open case is due."""
        return bool(self._connection.execute(_ARE_DUE, {"now": self._now}).scalar())

    def due(self, limit: int) -> list[Case]:
        """Up to `limit` open cases whose evaluation is due, longest due first."""
        return [case_of(row) for row in self._connection.execute(_DUE, {"now": self._now, "most": limit})]

    def waiting(self, case_id: str) -> Waiting:
        """The alerts of a case that were never notified."""
        found_ = self._connection.execute(_WAITING, {"case": case_id}).all()
        return Waiting([decode_alert(r.body) for r in found_], {r.alert_id: r.muted for r in found_ if r.muted})

    def notified_alerts(self, case_id: str, limit: int) -> list[PublishedAlert]:
        """The latest notified alerts of a case, the last first."""
        rows = self._connection.execute(_NOTIFIED, {"case": case_id, "most": limit})
        return [decode_alert(body) for body in rows.scalars()]

    def notified_channels(self, case_id: str) -> list[str]:
        """The channels that got any notification of a case, by name."""
        query = sql.select(deliveries.c.channel).join(outbox, outbox.c.id == deliveries.c.notification_id)
        query = query.where(outbox.c.case_id == case_id).distinct().order_by(deliveries.c.channel)
        return list(self._connection.execute(query).scalars())

    def create(self, new: Iterable[Case]) -> None:
        """Writes new cases."""
        insert(self._connection, cases, [_row(case) for case in new])

    def update(self, changed: Iterable[Case]) -> None:
        """Writes the state of known cases."""
        rows = [{f"new_{name}": value for name, value in _row(case).items()} for case in changed]
        if rows:
            self._connection.execute(_UPDATE, rows)

    def add_alerts(self, joined: Iterable[tuple[str, str, str | None, str | None]]) -> None:
        """Writes alerts of cases: case, alert, its notification if there is one, else why it is muted if it is."""
        names = ("case_id", "alert_id", "notification_id", "muted")
        insert(self._connection, case_alerts, [dict(zip(names, row, strict=True)) for row in joined])

    def record_notified(self, case_id: str, by: Mapping[str, str]) -> None:
        """Records the notification of each alert that waited."""
        rows = [{"c": case_id, "a": alert_id, "n": notification_id} for alert_id, notification_id in by.items()]
        self._update_alerts(rows, {"notification_id": sql.bindparam("n"), "muted": None})

    def record_muted(self, case: Case, reasons: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Records why alerts are muted, where the reason differs from `before`."""
        news = {alert_id: reason for alert_id, reason in reasons.items() if before.get(alert_id) != reason}
        rows = [{"c": case.id, "a": alert_id, "m": reason} for alert_id, reason in news.items()]
        self._update_alerts(rows, {"muted": sql.bindparam("m")})
        self.record_mutes(case.route, news)

    def record_mutes(self, route: str, reasons: Mapping[str, str]) -> None:
        """Adds to the history that alerts were muted."""
        insert(
            self._connection,
            mutes,
            [{"alert_id": a, "route": route, "at": self._now, "reason": r} for a, r in reasons.items()],
        )

    def _update_alerts(self, rows: list[dict[str, Any]], values: dict[str, Any]) -> None:
        if rows:
            mine = (case_alerts.c.case_id == sql.bindparam("c"), case_alerts.c.alert_id == sql.bindparam("a"))
            self._connection.execute(case_alerts.update().where(*mine).values(values), rows)


_SAME = (
    "route",
    "opened_at",
    "notified_at",
    "last_evaluated_at",
    "next_evaluation_at",
    "resolves_at",
    "closed",
    "severity",
    "notification_count",
)
"""Fields of a case that its row has as they are."""


def _row(case: Case) -> dict[str, Any]:
    return {name: getattr(case, name) for name in _SAME} | {
        "case_id": case.id,
        "key": key_of(case.route, case.group),
        "group": json.dumps(dict(case.group)),
        "scores": json.dumps(case.scores),
    }


def case_of(row: Any) -> Case:
    """The case of a row."""
    fields = {name: getattr(row, name) for name in _SAME}
    return Case(id=row.case_id, group=json.loads(row.group), scores=json.loads(row.scores), **fields)
