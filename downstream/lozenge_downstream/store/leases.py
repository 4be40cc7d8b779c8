"""Leases on what one notifier alone may do. A lease that is not renewed in time is free."""

import sqlalchemy as sql

from lozenge_downstream.store.sql_helpers import upsert
from lozenge_downstream.store.tables import leases


class Leases:
    """The leases of one transaction. The clocks of notifiers may differ by less than the time of a lease."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def take(self, name: str, holder: str, seconds: float) -> bool:
        """Takes or renews a lease for so many seconds; returns whether `holder` has it."""
        row = {"name": name, "holder": holder, "until": self._now + seconds}
        free = sql.or_(leases.c.holder == holder, leases.c.until < self._now)
        upsert(self._connection, leases, row, where=free)
        return self.holder(name) == holder

    def holder(self, name: str) -> str | None:
        """The present or the last holder."""
        return self._connection.execute(sql.select(leases.c.holder).where(leases.c.name == name)).scalar()

    def give_up(self, holder: str) -> None:
        """Releases all leases of `holder`."""
        self._connection.execute(leases.delete().where(leases.c.holder == holder))
