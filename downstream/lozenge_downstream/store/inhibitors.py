"""The alerts that inhibit others, by rule, and until when."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sql

from lozenge_downstream.store import tables
from lozenge_downstream.store.sql_helpers import among, found, upsert_greater

_INHIBITORS = among(
    sql.select(tables.inhibitors).where(tables.inhibitors.c.until > sql.bindparam("now")), tables.inhibitors.c.equal
)


class Inhibitors:
    """The inhibitors of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def record(self, active: Mapping[tuple[str, str, bool], tuple[float, str]]) -> None:
        """Records, by rule, `equal` and `two_sided`, until when which alert inhibits others."""
        names = ("rule", "equal", "two_sided", "until", "alert_id")
        rows = [dict(zip(names, (*key, *alert), strict=True)) for key, alert in active.items()]
        upsert_greater(self._connection, tables.inhibitors, rows, tables.inhibitors.c.until)

    def active_rules(self) -> set[str]:
        """The rules that have an active inhibitor."""
        query = sql.select(tables.inhibitors.c.rule).distinct().where(tables.inhibitors.c.until > self._now)
        return set(self._connection.execute(query).scalars())

    def active(self, equals: Sequence[str]) -> dict[tuple[str, str, bool], str]:
        """The active inhibitors by rule, `equal` and `two_sided`."""
        rows = found(self._connection, _INHIBITORS, equals, now=self._now)
        return {(row.rule, row.equal, row.two_sided): row.alert_id for row in rows}
