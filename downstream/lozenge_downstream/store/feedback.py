"""What people said of alerts."""

import sqlalchemy as sql

from lozenge_downstream.model import Alert, Verdict
from lozenge_downstream.store.received_alerts import decode_alert
from lozenge_downstream.store.sql_helpers import insert
from lozenge_downstream.store.tables import arrivals, verdicts


class Verdicts:
    """The verdicts of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def alert(self, alert_id: str) -> Alert | None:
        """The alert, if it came and is not forgotten."""
        query = sql.select(arrivals.c.body).where(arrivals.c.alert_id == alert_id, arrivals.c.body.is_not(None))
        body = self._connection.execute(query.limit(1)).scalar()
        return decode_alert(body) if body else None

    def add(self, alert: Alert, verdict: str, author: str, note: str) -> None:
        """One more word on an alert."""
        about = {"alert_id": alert.id, "detector": alert.detector, "release": alert.release}
        insert(
            self._connection,
            verdicts,
            [about | {"verdict": verdict, "author": author, "note": note, "at": self._now}],
        )

    def precision(self) -> dict[tuple[str, str], float]:
        """The share of confirmed alerts among those judged, by detector and release."""
        judged: dict[tuple[str, str], dict[str, int]] = {}
        for (detector, release, verdict), count in self.counts().items():
            judged.setdefault((detector, release), {})[verdict] = count
        return {place: said.get(Verdict.CONFIRMED, 0) / sum(said.values()) for place, said in judged.items()}

    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many alerts there are of each detector, release and last judgement."""
        judges = verdicts.c.verdict != Verdict.SNOOZE.value
        last = sql.select(sql.func.max(verdicts.c.row)).where(judges).group_by(verdicts.c.alert_id)
        query = sql.select(verdicts.c.detector, verdicts.c.release, verdicts.c.verdict, sql.func.count())
        query = query.where(verdicts.c.row.in_(last))
        rows = self._connection.execute(query.group_by(verdicts.c.detector, verdicts.c.release, verdicts.c.verdict))
        return {(str(row[0]), str(row[1]), str(row[2])): int(row[3]) for row in rows}
