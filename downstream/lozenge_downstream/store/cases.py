"""Cases, the alerts in them, and what keeps alerts from being told: silences, and alerts that inhibit others."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import sqlalchemy as sql

from lozenge_downstream.model import Alert, Case
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import among, found, insert, upsert_greater
from lozenge_downstream.store.tables import (
    arrivals,
    cases,
    deliveries,
    is_open,
    is_waiting,
    members,
    mutes,
    outbox,
    sources,
)

_OPEN = among(sql.select(cases).where(is_open), cases.c.key)
_IS_DUE = (is_open, cases.c.due_at <= sql.bindparam("now"))
_ARE_DUE = sql.select(sql.exists().where(*_IS_DUE))
_DUE = sql.select(cases).where(*_IS_DUE).order_by(cases.c.due_at).limit(sql.bindparam("most"))
_IN_CASE = members.c.case_id == sql.bindparam("case")
_WAITING = (
    sql.select(members.c.alert_id, members.c.muted, arrivals.c.body)
    .join(arrivals, sql.and_(arrivals.c.alert_id == members.c.alert_id, arrivals.c.body.is_not(None)))
    .where(_IN_CASE, is_waiting)
    .order_by(arrivals.c.row)
)
_TOLD_OF = (
    sql.select(arrivals.c.body)
    .join(members, arrivals.c.alert_id == members.c.alert_id)
    .where(_IN_CASE, ~is_waiting, arrivals.c.body.is_not(None))
    .order_by(arrivals.c.row.desc())
    .limit(sql.bindparam("most"))
)
_NEVER_CHANGED = ("case_id", "route", "key", "group", "opened_at")
_CHANGE = (
    cases.update()
    .where(cases.c.case_id == sql.bindparam("new_case_id"))
    .values({c.name: sql.bindparam(f"new_{c.name}") for c in cases.c if c.name not in _NEVER_CHANGED})
)
_INHIBITORS = among(sql.select(sources).where(sources.c.until > sql.bindparam("now")), sources.c.equal)


class Waiting(NamedTuple):
    """The alerts of a case that were never told, and why a look did not tell those that it did not."""

    alerts: list[Alert]
    muted: dict[str, str]


def key_of(route: str, group: Mapping[str, str]) -> str:
    """What an open case is found by."""
    return sha256(json.dumps([route, sorted(group.items())]).encode()).hexdigest()[:32]


class Cases:
    """The cases of one transaction, which must be alone."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def open(self, keys: Sequence[str]) -> dict[str, Case]:
        """The open cases among `keys`."""
        return {row.key: case_of(row) for row in found(self._connection, _OPEN, keys)}

    def are_due(self) -> bool:
        """Whether any open case is to be looked at."""
        return bool(self._connection.execute(_ARE_DUE, {"now": self._now}).scalar())

    def due(self, limit: int) -> list[Case]:
        """Up to `limit` open cases that are to be looked at, longest due first."""
        return [case_of(row) for row in self._connection.execute(_DUE, {"now": self._now, "most": limit})]

    def waiting(self, case_id: str) -> Waiting:
        """What was never told of a case."""
        found_ = self._connection.execute(_WAITING, {"case": case_id}).all()
        return Waiting([decode_alert(r.body) for r in found_], {r.alert_id: r.muted for r in found_ if r.muted})

    def told_of(self, case_id: str, limit: int) -> list[Alert]:
        """The latest alerts of a case that were told, the last first."""
        rows = self._connection.execute(_TOLD_OF, {"case": case_id, "most": limit})
        return [decode_alert(body) for body in rows.scalars()]

    def channels_of(self, case_id: str) -> list[str]:
        """The channels that were given anything of a case, by name."""
        query = sql.select(deliveries.c.channel).join(outbox, outbox.c.id == deliveries.c.notification_id)
        query = query.where(outbox.c.case_id == case_id).distinct().order_by(deliveries.c.channel)
        return list(self._connection.execute(query).scalars())

    def create(self, made: Iterable[Case]) -> None:
        """Writes cases that are new."""
        insert(self._connection, cases, [_row(case) for case in made])

    def change(self, changed: Iterable[Case]) -> None:
        """Writes how cases stand now."""
        rows = [{f"new_{name}": value for name, value in _row(case).items()} for case in changed]
        if rows:
            self._connection.execute(_CHANGE, rows)

    def add(self, joined: Iterable[tuple[str, str, str | None, str | None]]) -> None:
        """Writes members: case, alert, the notification that told it if it was told, else why not if that is known."""
        names = ("case_id", "alert_id", "notification_id", "muted")
        insert(self._connection, members, [dict(zip(names, row, strict=True)) for row in joined])

    def told(self, case_id: str, by: Mapping[str, str]) -> None:
        """Notes which notification told each alert that waited."""
        rows = [{"c": case_id, "a": alert_id, "n": notification_id} for alert_id, notification_id in by.items()]
        self._settle(rows, {"notification_id": sql.bindparam("n"), "muted": None})

    def muted(self, case: Case, reasons: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Notes why alerts are not told, where that is news."""
        news = {alert_id: reason for alert_id, reason in reasons.items() if before.get(alert_id) != reason}
        rows = [{"c": case.id, "a": alert_id, "m": reason} for alert_id, reason in news.items()]
        self._settle(rows, {"muted": sql.bindparam("m")})
        self.note_muted(case.route, news)

    def note_muted(self, route: str, reasons: Mapping[str, str]) -> None:
        """Keeps for `why` that alerts began not to be told."""
        insert(
            self._connection,
            mutes,
            [{"alert_id": a, "route": route, "at": self._now, "reason": r} for a, r in reasons.items()],
        )

    def inhibit(self, lasting: Mapping[tuple[str, str, bool], tuple[float, str]]) -> None:
        """Notes, by rule, `equal` and whether it matches both its sides, until when which alert inhibits others."""
        names = ("rule", "equal", "two_sided", "until", "alert_id")
        rows = [dict(zip(names, (*place, *alert), strict=True)) for place, alert in lasting.items()]
        upsert_greater(self._connection, sources, rows, sources.c.until)

    def inhibiting(self) -> set[str]:
        """The rules by which any alert inhibits now."""
        query = sql.select(sources.c.rule).distinct().where(sources.c.until > self._now)
        return set(self._connection.execute(query).scalars())

    def inhibitors(self, equals: Sequence[str]) -> dict[tuple[str, str, bool], str]:
        """The alerts that inhibit now, by rule, `equal` and whether they match both its sides."""
        rows = found(self._connection, _INHIBITORS, equals, now=self._now)
        return {(row.rule, row.equal, row.two_sided): row.alert_id for row in rows}

    def _settle(self, rows: list[dict[str, Any]], values: dict[str, Any]) -> None:
        if rows:
            mine = (members.c.case_id == sql.bindparam("c"), members.c.alert_id == sql.bindparam("a"))
            self._connection.execute(members.update().where(*mine).values(values), rows)


def _row(case: Case) -> dict[str, Any]:
    return {
        "case_id": case.id,
        "route": case.route,
        "key": key_of(case.route, case.group),
        "group": json.dumps(dict(case.group)),
        "opened_at": case.opened_at,
        "told_at": case.told_at,
        "looked_at": case.looked_at,
        "due_at": case.due_at,
        "over_at": case.over_at,
        "closed": case.closed,
        "severity": case.severity,
        "scores": json.dumps(case.scores),
        "tellings": case.tellings,
    }


def case_of(row: Any) -> Case:
    """The case of a row."""
    same = ("route", "opened_at", "due_at", "over_at", "told_at", "looked_at", "closed", "severity", "tellings")
    fields = {name: getattr(row, name) for name in same}
    return Case(id=row.case_id, group=json.loads(row.group), scores=json.loads(row.scores), **fields)
