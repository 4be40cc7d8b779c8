"""The feedback of analysts on alerts."""

import sqlalchemy as sql

from lozenge_downstream.model import PublishedAlert, Verdict
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import insert
from lozenge_downstream.store.tables import feedback, received_alerts


class Feedback:
    """The feedback of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def alert(self, alert_id: str) -> PublishedAlert | None:
        """The alert, if it was received and has not expired."""
        query = sql.select(received_alerts.c.body).where(
            received_alerts.c.alert_id == alert_id, received_alerts.c.body.is_not(None)
        )
        body = self._connection.execute(query.limit(1)).scalar()
        return decode_alert(body) if body else None

    def add(self, alert: PublishedAlert, verdict: str, author: str, note: str) -> None:
        """Records one answer to an alert."""
        about = {"alert_id": alert.id, "detector": alert.detector, "release": alert.release}
        insert(
            self._connection,
            feedback,
            [about | {"verdict": verdict, "author": author, "note": note, "at": self._now}],
        )

    def precision(self) -> dict[tuple[str, str], float]:
        """The share of confirmed alerts among those with a verdict, by detector and release."""
        by_release: dict[tuple[str, str], dict[str, int]] = {}
        for (detector, release, verdict), count in self.counts().items():
            by_release.setdefault((detector, release), {})[verdict] = count
        return {key: said.get(Verdict.CONFIRMED, 0) / sum(said.values()) for key, said in by_release.items()}

    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many alerts there are of each detector, release and last verdict."""
        is_verdict = feedback.c.verdict != Verdict.SNOOZE.value
        last = sql.select(sql.func.max(feedback.c.row)).where(is_verdict).group_by(feedback.c.alert_id)
        query = sql.select(feedback.c.detector, feedback.c.release, feedback.c.verdict, sql.func.count())
        query = query.where(feedback.c.row.in_(last))
        rows = self._connection.execute(query.group_by(feedback.c.detector, feedback.c.release, feedback.c.verdict))
        return {(str(row[0]), str(row[1]), str(row[2])): int(row[3]) for row in rows}
