"""Every record that was read: duplicates are found by it, and rate-limited alerts wait in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sql

from lozenge_downstream.model import Baseline, Classification, PublishedAlert, ReceivedAlert, ReceivedRecord
from lozenge_downstream.store.sql_helpers import among, found, insert, upsert
from lozenge_downstream.store.tables import alert_counts, is_rate_limited, received_alerts

MINUTE = 60.0
DAY_MINUTES = 24 * 60
PAGE = 1_000
LABELLED = 1_000
"""The latest alerts, whose labels count as known."""
decode_alert = msgspec.json.Decoder(PublishedAlert).decode
_SEEN = among(sql.select(received_alerts.c.alert_id), received_alerts.c.alert_id)
_ACCEPTED = among(
    sql.select(alert_counts.c.detector, sql.func.sum(alert_counts.c.alerts))
    .where(alert_counts.c.minute >= sql.bindparam("since"))
    .group_by(alert_counts.c.detector),
    alert_counts.c.detector,
)


class ReceivedAlerts:
    """The received alerts of one transaction, and how many of each detector there are."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def seen(self, alert_ids: Sequence[str]) -> set[str]:
        """The `alert_ids` that were received before."""
        return {row[0] for row in found(self._connection, _SEEN, alert_ids)}

    def record(self, received: Iterable[ReceivedAlert]) -> None:
        """Writes each record with its outcome, and counts the accepted alerts."""
        received = list(received)
        insert(self._connection, received_alerts, [_row(a) | {"received_at": self._now} for a in received])
        accepted = Counter(a.alert.detector for a in received if a.alert and a.outcome is Classification.ACCEPTED)
        self._count(accepted)

    def accepted_within(self, detectors: Sequence[str], within: float) -> dict[str, int]:
        """How many alerts of each detector were accepted in the last `within` seconds, to the minute."""
        since = int((self._now - within) // MINUTE) + 1
        rows = found(self._connection, _ACCEPTED, detectors, since=since)
        return dict.fromkeys(detectors, 0) | {str(detector): int(number) for detector, number in rows}

    def detectors(self) -> list[str]:
        """The detectors of which any alert was accepted, by name."""
        query = sql.select(alert_counts.c.detector).distinct().order_by(alert_counts.c.detector)
        return [str(name) for name in self._connection.execute(query).scalars()]

    def baselines(self, days: int) -> dict[str, Baseline]:
        """The baseline of each detector over the last `days`."""
        today = int(self._now // MINUTE)
        recent = alert_counts.c.minute >= today - days * DAY_MINUTES
        ends = sql.select(
            alert_counts.c.detector, sql.func.min(alert_counts.c.minute), sql.func.max(alert_counts.c.minute)
        )
        found_ends = self._connection.execute(ends.where(recent).group_by(alert_counts.c.detector))
        known = {str(detector): (int(first), int(last)) for detector, first, last in found_ends}
        hour = (alert_counts.c.minute // 60) % 24
        query = sql.select(alert_counts.c.detector, hour, sql.func.sum(alert_counts.c.alerts)).where(recent)
        hours: dict[str, list[float]] = {detector: [0.0] * 24 for detector in known}
        for detector, of_day, number in self._connection.execute(query.group_by(alert_counts.c.detector, hour)):
            first, last = known[detector]
            hours[detector][int(of_day)] = number / max(1.0, (last - first) / DAY_MINUTES)
        return {d: Baseline(first * MINUTE, (last + 1) * MINUTE, hours[d]) for d, (first, last) in known.items()}

    def add_alarms(self, alarms: Iterable[PublishedAlert]) -> list[PublishedAlert]:
        """Records alarms of the notifier as received alerts; returns the new ones."""
        alarms = list(alarms)
        seen = self.seen([alarm.id for alarm in alarms])
        news = [alarm for alarm in alarms if alarm.id not in seen]
        self.record(
            ReceivedAlert(
                ReceivedRecord("", 0, 0, None, None, []), Classification.ACCEPTED, "raised by the notifier", a
            )
            for a in news
        )
        return news

    def labels(self, latest: int = LABELLED) -> list[str]:
        """The names of the labels of the `latest` accepted alerts."""
        alerts = islice(self.since(0.0), latest)
        return sorted({name for alert in alerts for name in alert.labels})

    def since(self, moment: float) -> Iterator[PublishedAlert]:
        """Accepted alerts that were received after `moment`, the latest first."""
        query = sql.select(
            received_alerts.c.row, received_alerts.c.received_at, received_alerts.c.outcome, received_alerts.c.body
        )
        query = query.order_by(received_alerts.c.row.desc()).limit(PAGE)
        # backwards by row: there is no index of the time, and the last few of weeks of alerts are wanted
        rows = self._connection.execute(query).all()
        while rows and rows[0].received_at > moment:
            accepted = (
                row for row in rows if row.outcome == Classification.ACCEPTED.value and row.received_at > moment
            )
            yield from (decode_alert(row.body) for row in accepted)
            rows = self._connection.execute(query.where(received_alerts.c.row < rows[-1].row)).all()

    def rate_limited(self) -> dict[str, int]:
        """How many rate-limited alerts of each detector wait."""
        query = (
            sql.select(received_alerts.c.detector, sql.func.count())
            .where(is_rate_limited)
            .group_by(received_alerts.c.detector)
        )
        return {str(row[0]): int(row[1]) for row in self._connection.execute(query)}

    def take_rate_limited(
        self, detector: str, outcome: Classification, reason: str, limit: int
    ) -> list[PublishedAlert]:
        """Up to `limit` rate-limited alerts of a detector, oldest first; they get the `outcome` and the `reason`."""
        query = sql.select(received_alerts.c.row, received_alerts.c.body).where(
            is_rate_limited, received_alerts.c.detector == detector
        )
        rows = self._connection.execute(query.order_by(received_alerts.c.row).limit(limit)).all()
        change = received_alerts.update().where(received_alerts.c.row == sql.bindparam("r"))
        if rows:
            changed = change.values(outcome=outcome.value, reason=reason)
            self._connection.execute(changed, [{"r": row.row} for row in rows])
        return [decode_alert(row.body) for row in rows]

    def _count(self, accepted: Counter[str]) -> None:
        for detector, number in accepted.items():
            row = {"detector": detector, "minute": int(self._now // MINUTE), "alerts": number}
            upsert(self._connection, alert_counts, row, adding="alerts")


def _row(received: ReceivedAlert) -> dict[str, Any]:
    record, alert = received.record, received.alert
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "alert_id": alert.id if alert else None,
        "detector": alert.detector if alert else None,
        "outcome": received.outcome.value,
        "reason": received.reason,
        "body": msgspec.json.encode(alert).decode()
        if alert and received.outcome is not Classification.DUPLICATE
        else None,
    }
