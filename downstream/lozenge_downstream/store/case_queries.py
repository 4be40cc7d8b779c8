"""How cases stand, for operators: what was told of each, what waits and why, and when it will be looked at next."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sql

from lozenge_downstream.model import Alert
from lozenge_downstream.routing.matchers import Matcher, all_match
from lozenge_downstream.store.cases import case_of
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import among, found
from lozenge_downstream.store.tables import arrivals, cases, is_open, members

AT_ONCE = 100
MOST_ALERTS = 1_000
"""Of one case that are shown: the latest."""


class _Member(NamedTuple):
    alert: Alert
    notification_id: str | None
    muted: str | None


class CaseQueries:
    """What `lozenge cases` asks. Severity and score are those of all alerts of a case, told or not."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def open(self, matchers: Sequence[Matcher], limit: int) -> list[dict[str, Any]]:
        """Up to `limit` open cases with an alert that matches all of `matchers`, the newest first."""
        shown: list[dict[str, Any]] = []
        query = sql.select(cases).where(is_open).order_by(cases.c.opened_at.desc(), cases.c.case_id)
        for rows in self._connection.execute(query).partitions(AT_ONCE):
            alerts = self._members([row.case_id for row in rows])
            shown += [
                _standing(row, alerts[row.case_id])
                for row in rows
                if any(all_match(matchers, member.alert.labels) for member in alerts[row.case_id])
            ]
            if len(shown) >= limit:
                break
        return shown[:limit]

    def of(self, case_id: str) -> dict[str, Any] | None:
        """One case, open or not, with its alerts in the order of their coming; None if there is none."""
        row = self._connection.execute(sql.select(cases).where(cases.c.case_id == case_id)).one_or_none()
        if row is None:
            return None
        alerts = self._members([case_id])[case_id]
        return _standing(row, alerts) | {
            "alerts": [
                {
                    "received_at": m.alert.received_at,
                    "alert_id": m.alert.id,
                    "detector": m.alert.detector,
                    "severity": m.alert.severity,
                    "score": m.alert.score,
                    "title": m.alert.title,
                    "notification_id": m.notification_id,
                    "muted": m.muted,
                }
                for m in alerts[-MOST_ALERTS:]
            ]
        }

    def _members(self, case_ids: Sequence[str]) -> dict[str, list[_Member]]:
        columns = (members.c.case_id, members.c.notification_id, members.c.muted, arrivals.c.body)
        has_body = sql.and_(arrivals.c.alert_id == members.c.alert_id, arrivals.c.body.is_not(None))
        query = sql.select(*columns).join(arrivals, has_body).order_by(arrivals.c.row)
        of: dict[str, list[_Member]] = defaultdict(list)
        for row in found(self._connection, among(query, members.c.case_id), case_ids):
            of[row.case_id].append(_Member(decode_alert(row.body), row.notification_id, row.muted))
        return of


def _standing(row: Any, alerts: Sequence[_Member]) -> dict[str, Any]:
    case = case_of(row)
    for member in alerts:
        case.include(member.alert)
    waiting = [member for member in alerts if member.notification_id is None]
    return {
        "case_id": case.id,
        "route": case.route,
        "group": case.group,
        "severity": case.severity,
        "score": case.score,
        "told": len(alerts) - len(waiting),
        "waiting": len(waiting),
        "opened_at": case.opened_at,
        "told_at": case.told_at,
        "muted": list(dict.fromkeys(member.muted for member in waiting if member.muted)),
        "due_at": None if case.closed else case.due_at,
        "over_at": case.over_at,
        "closed": case.closed,
    }
