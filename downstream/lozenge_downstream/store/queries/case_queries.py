"""The state of cases, for operators: notified and waiting alerts, why they wait, and the next evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sql

from lozenge_downstream.model import PublishedAlert
from lozenge_downstream.routing.matchers import Matcher, all_match
from lozenge_downstream.store.cases import case_of
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import among, found
from lozenge_downstream.store.tables import case_alerts, cases, is_closed, is_open, received_alerts

PAGE = 100
MAX_ALERTS = 1_000
"""Alerts of one case that are shown: the latest."""


class _CaseAlert(NamedTuple):
    alert: PublishedAlert
    notification_id: str | None
    muted: str | None


class CaseQueries:
    """The answers to `lozenge cases`. Severity and score are those of all alerts of a case, notified or not.

    A case is open until it resolves, also if nothing remains to be notified of it.
    """

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def open(self, matchers: Sequence[Matcher], limit: int) -> list[dict[str, Any]]:
        """Up to `limit` open cases with an alert that matches all of `matchers`, the newest first."""
        shown: list[dict[str, Any]] = []
        # two selects, because each has an index and their disjunction has none
        lasting = sql.select(cases).where(is_closed, cases.c.resolves_at > self._now)
        query = sql.union_all(sql.select(cases).where(is_open), lasting).order_by(sql.desc("opened_at"), "case_id")
        for rows in self._connection.execute(query).partitions(PAGE):
            alerts = self._alerts([row.case_id for row in rows])
            shown += [
                self._summary(row, alerts[row.case_id])
                for row in rows
                if any(all_match(matchers, member.alert.labels) for member in alerts[row.case_id])
            ]
            if len(shown) >= limit:
                break
        return shown[:limit]

    def of(self, case_id: str) -> dict[str, Any] | None:
        """One case, open or closed, with its alerts in the order of their arrival; None if there is none."""
        row = self._connection.execute(sql.select(cases).where(cases.c.case_id == case_id)).one_or_none()
        if row is None:
            return None
        alerts = self._alerts([case_id])[case_id]
        return self._summary(row, alerts) | {
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
                for m in alerts[-MAX_ALERTS:]
            ]
        }

    def _alerts(self, case_ids: Sequence[str]) -> dict[str, list[_CaseAlert]]:
        columns = (case_alerts.c.case_id, case_alerts.c.notification_id, case_alerts.c.muted, received_alerts.c.body)
        has_body = sql.and_(received_alerts.c.alert_id == case_alerts.c.alert_id, received_alerts.c.body.is_not(None))
        query = sql.select(*columns).join(received_alerts, has_body).order_by(received_alerts.c.row)
        of: dict[str, list[_CaseAlert]] = defaultdict(list)
        for row in found(self._connection, among(query, case_alerts.c.case_id), case_ids):
            of[row.case_id].append(_CaseAlert(decode_alert(row.body), row.notification_id, row.muted))
        return of

    def _summary(self, row: Any, alerts: Sequence[_CaseAlert]) -> dict[str, Any]:
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
            "notified": len(alerts) - len(waiting),
            "waiting": len(waiting),
            "opened_at": case.opened_at,
            "notified_at": case.notified_at,
            "muted": list(dict.fromkeys(member.muted for member in waiting if member.muted)),
            "next_evaluation_at": None if case.closed else case.next_evaluation_at,
            "resolves_at": case.resolves_at,
            "closed": case.closed and case.resolves_at <= self._now,
        }
