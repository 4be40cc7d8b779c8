"""The history of one alert, as far as the notifier knows it."""

import json
from typing import Any

import sqlalchemy as sql

from lozenge_downstream.store.tables import (
    case_alerts,
    cases,
    deliveries,
    failed_attempts,
    feedback,
    mutes,
    outbox,
    received_alerts,
)


class AlertHistory:
    """The answers to `lozenge why`."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def of(self, alert_id: str) -> dict[str, Any] | None:
        """Its records, content, cases, mutes, notifications and feedback; None if it was never received."""
        received = self._rows(
            sql.select(received_alerts).where(received_alerts.c.alert_id == alert_id).order_by(received_alerts.c.row)
        )
        if not received:
            return None
        bodies = [json.loads(row["body"]) for row in received if row["body"]]
        names = ("topic", "partition", "offset", "outcome", "reason", "received_at")
        return {
            "alert_id": alert_id,
            "alert": bodies[0] if bodies else None,
            "received_alerts": [{name: row[name] for name in names} for row in received],
            "muted": self._rows(
                sql.select(mutes.c.route, mutes.c.at, mutes.c.reason)
                .where(mutes.c.alert_id == alert_id)
                .order_by(mutes.c.row)
            ),
            "cases": [self._case(row) for row in self._memberships(alert_id)],
            "feedback": self._rows(
                sql.select(feedback.c.verdict, feedback.c.author, feedback.c.note, feedback.c.at)
                .where(feedback.c.alert_id == alert_id)
                .order_by(feedback.c.row)
            ),
        }

    def _memberships(self, alert_id: str) -> list[dict[str, Any]]:
        query = sql.select(cases, case_alerts.c.notification_id, case_alerts.c.muted)
        joined = query.join(case_alerts, case_alerts.c.case_id == cases.c.case_id)
        return self._rows(joined.where(case_alerts.c.alert_id == alert_id).order_by(cases.c.opened_at))

    def _case(self, row: dict[str, Any]) -> dict[str, Any]:
        names = (
            "case_id",
            "route",
            "opened_at",
            "notified_at",
            "next_evaluation_at",
            "resolves_at",
            "severity",
        )
        return {name: row[name] for name in names} | {
            "closed": row["closed"] and row["resolves_at"] <= self._now,
            "group": json.loads(row["group"]),
            "muted": row["muted"] if row["notification_id"] is None else None,
            "notification": self._notification(row["notification_id"]) if row["notification_id"] else None,
        }

    def _notification(self, id: str) -> dict[str, Any]:
        names = ("topic", "partition", "seq", "created_at", "published_at")
        columns = (outbox.c[name] for name in (*names, "body"))
        (sent,) = self._rows(sql.select(*columns).where(outbox.c.id == id)) or [dict.fromkeys((*names, "body"))]
        body = sent.pop("body")
        to = ("channel", "state", "attempts", "due_at", "error")
        query = sql.select(*(deliveries.c[name] for name in to)).where(deliveries.c.notification_id == id)
        failed = sql.select(failed_attempts.c.channel, failed_attempts.c.at, failed_attempts.c.error).where(
            failed_attempts.c.notification_id == id
        )
        return {
            "notification_id": id,
            **sent,
            "routing": json.loads(body)["data"].get("routing", "") if body else "",
            "failed_attempts": self._rows(failed.order_by(failed_attempts.c.row)),
            "deliveries": self._rows(query.order_by(deliveries.c.channel)),
        }

    def _rows(self, query: sql.Select[Any]) -> list[dict[str, Any]]:
        return [dict(row) for row in self._connection.execute(query).mappings()]
