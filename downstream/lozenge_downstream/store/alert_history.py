"""The whole way of one alert, as far as the notifier knows it."""

import json
from typing import Any

import sqlalchemy as sql

from lozenge_downstream.store.tables import arrivals, cases, deliveries, failures, members, mutes, outbox, verdicts


class History:
    """What `lozenge why` asks."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def of(self, alert_id: str) -> dict[str, Any] | None:
        """How it came, what it says, its cases, why it waited, and who was told; None if it never came."""
        came = self._rows(sql.select(arrivals).where(arrivals.c.alert_id == alert_id).order_by(arrivals.c.row))
        if not came:
            return None
        bodies = [json.loads(row["body"]) for row in came if row["body"]]
        names = ("topic", "partition", "offset", "outcome", "reason", "received_at")
        return {
            "alert_id": alert_id,
            "alert": bodies[0] if bodies else None,
            "arrivals": [{name: row[name] for name in names} for row in came],
            "muted": self._rows(
                sql.select(mutes.c.route, mutes.c.at, mutes.c.reason)
                .where(mutes.c.alert_id == alert_id)
                .order_by(mutes.c.row)
            ),
            "cases": [self._case(row) for row in self._memberships(alert_id)],
            "verdicts": self._rows(
                sql.select(verdicts.c.verdict, verdicts.c.author, verdicts.c.note, verdicts.c.at)
                .where(verdicts.c.alert_id == alert_id)
                .order_by(verdicts.c.row)
            ),
        }

    def _memberships(self, alert_id: str) -> list[dict[str, Any]]:
        query = sql.select(cases, members.c.notification_id, members.c.muted)
        joined = query.join(members, members.c.case_id == cases.c.case_id)
        return self._rows(joined.where(members.c.alert_id == alert_id).order_by(cases.c.opened_at))

    def _case(self, row: dict[str, Any]) -> dict[str, Any]:
        names = ("case_id", "route", "opened_at", "told_at", "due_at", "over_at", "closed", "severity")
        return {name: row[name] for name in names} | {
            "group": json.loads(row["group"]),
            "waits": row["muted"] if row["notification_id"] is None else None,
            "notification": self._notification(row["notification_id"]) if row["notification_id"] else None,
        }

    def _notification(self, id: str) -> dict[str, Any]:
        names = ("topic", "partition", "seq", "created_at", "published_at")
        (sent,) = self._rows(sql.select(*(outbox.c[name] for name in names)).where(outbox.c.id == id)) or [
            dict.fromkeys(names)
        ]
        to = ("channel", "state", "attempts", "due_at", "error")
        query = sql.select(*(deliveries.c[name] for name in to)).where(deliveries.c.notification_id == id)
        failed = sql.select(failures.c.channel, failures.c.at, failures.c.error).where(failures.c.notification_id == id)
        return {
            "notification_id": id,
            **sent,
            "failures": self._rows(failed.order_by(failures.c.row)),
            "deliveries": self._rows(query.order_by(deliveries.c.channel)),
        }

    def _rows(self, query: sql.Select[Any]) -> list[dict[str, Any]]:
        return [dict(row) for row in self._connection.execute(query).mappings()]
