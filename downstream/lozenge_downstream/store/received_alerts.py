"""Every record that was read: what makes repeats collapse, what `why` asks, and where parked alerts wait."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sql

from lozenge_downstream.model import Alert, Arrival, Baseline, Outcome, Record
from lozenge_downstream.store.sql_helpers import among, found, insert, upsert
from lozenge_downstream.store.tables import arrivals, counts, is_parked

MINUTE = 60.0
DAY_MINUTES = 24 * 60
PAGE = 1_000
decode_alert = msgspec.json.Decoder(Alert).decode
_SEEN = among(sql.select(arrivals.c.alert_id), arrivals.c.alert_id)
_RAISED = among(
    sql.select(counts.c.detector, sql.func.sum(counts.c.alerts))
    .where(counts.c.minute >= sql.bindparam("since"))
    .group_by(counts.c.detector),
    counts.c.detector,
)


class ReceivedAlerts:
    """What was read, and how much of each detector."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def seen(self, alert_ids: Sequence[str]) -> set[str]:
        """Those of `alert_ids` that came before."""
        return {row[0] for row in found(self._connection, _SEEN, alert_ids)}

    def record(self, judged: Iterable[Arrival]) -> None:
        """Writes down what became of each record, and counts what was accepted."""
        judged = list(judged)
        insert(self._connection, arrivals, [_row(a) | {"received_at": self._now} for a in judged])
        accepted = Counter(a.alert.detector for a in judged if a.alert and a.outcome is Outcome.ACCEPTED)
        self._count(accepted)

    def raised(self, detectors: Sequence[str], within: float) -> dict[str, int]:
        """How many alerts of each detector were accepted in the last `within` seconds, to the minute."""
        since = int((self._now - within) // MINUTE) + 1
        rows = found(self._connection, _RAISED, detectors, since=since)
        return dict.fromkeys(detectors, 0) | {str(detector): int(number) for detector, number in rows}

    def baselines(self, days: int) -> dict[str, Baseline]:
        """How each detector was over the last `days`."""
        today = int(self._now // MINUTE)
        recent = counts.c.minute >= today - days * DAY_MINUTES
        ends = sql.select(counts.c.detector, sql.func.min(counts.c.minute), sql.func.max(counts.c.minute))
        found_ends = self._connection.execute(ends.where(recent).group_by(counts.c.detector))
        known = {str(detector): (int(first), int(last)) for detector, first, last in found_ends}
        hour = (counts.c.minute // 60) % 24
        query = sql.select(counts.c.detector, hour, sql.func.sum(counts.c.alerts)).where(recent)
        hours: dict[str, list[float]] = {detector: [0.0] * 24 for detector in known}
        for detector, of_day, number in self._connection.execute(query.group_by(counts.c.detector, hour)):
            first, last = known[detector]
            hours[detector][int(of_day)] = number / max(1.0, (last - first) / DAY_MINUTES)
        return {d: Baseline(first * MINUTE, (last + 1) * MINUTE, hours[d]) for d, (first, last) in known.items()}

    def raise_own(self, alarms: Iterable[Alert]) -> list[Alert]:
        """Takes in alerts that no record brought; those that are news."""
        alarms = list(alarms)
        seen = self.seen([alarm.id for alarm in alarms])
        news = [alarm for alarm in alarms if alarm.id not in seen]
        self.record(
            Arrival(Record("", 0, 0, None, None, []), Outcome.ACCEPTED, "raised by the notifier", a) for a in news
        )
        return news

    def since(self, moment: float) -> Iterator[Alert]:
        """Alerts that were accepted and came after `moment`, the latest first."""
        query = sql.select(arrivals.c.row, arrivals.c.received_at, arrivals.c.outcome, arrivals.c.body)
        query = query.order_by(arrivals.c.row.desc()).limit(PAGE)
        # backwards by row: no index knows when they came, and those that matter are the last few of weeks
        rows = self._connection.execute(query).all()
        while rows and rows[0].received_at > moment:
            accepted = (row for row in rows if row.outcome == Outcome.ACCEPTED.value and row.received_at > moment)
            yield from (decode_alert(row.body) for row in accepted)
            rows = self._connection.execute(query.where(arrivals.c.row < rows[-1].row)).all()

    def parked(self) -> dict[str, int]:
        """How many alerts of each detector are parked."""
        query = sql.select(arrivals.c.detector, sql.func.count()).where(is_parked).group_by(arrivals.c.detector)
        return {str(row[0]): int(row[1]) for row in self._connection.execute(query)}

    def take_parked(self, detector: str, outcome: Outcome, reason: str, limit: int) -> list[Alert]:
        """Up to `limit` of a detector's parked alerts, oldest first, which are `outcome` for `reason` now."""
        query = sql.select(arrivals.c.row, arrivals.c.body).where(is_parked, arrivals.c.detector == detector)
        rows = self._connection.execute(query.order_by(arrivals.c.row).limit(limit)).all()
        change = arrivals.update().where(arrivals.c.row == sql.bindparam("r"))
        if rows:
            changed = change.values(outcome=outcome.value, reason=reason)
            self._connection.execute(changed, [{"r": row.row} for row in rows])
        return [decode_alert(row.body) for row in rows]

    def _count(self, accepted: Counter[str]) -> None:
        for detector, number in accepted.items():
            row = {"detector": detector, "minute": int(self._now // MINUTE), "alerts": number}
            upsert(self._connection, counts, row, adding="alerts")


def _row(arrival: Arrival) -> dict[str, Any]:
    record, alert = arrival.record, arrival.alert
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "alert_id": alert.id if alert else None,
        "detector": alert.detector if alert else None,
        "outcome": arrival.outcome.value,
        "reason": arrival.reason,
        "body": msgspec.json.encode(alert).decode() if alert and arrival.outcome is not Outcome.REPEATED else None,
    }
