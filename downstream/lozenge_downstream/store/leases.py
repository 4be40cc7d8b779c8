"""Who does what one instance alone may do. A lease that is not renewed in time is anybody's."""

import sqlalchemy as sql

from lozenge_downstream.store.sql_helpers import upsert
from lozenge_downstream.store.tables import leases


class Leases:
    """The leases of one transaction. Clocks of instances may differ by less than a lease lasts."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def take(self, name: str, holder: str, seconds: float) -> bool:
        """Takes or renews one for so many seconds; whether `holder` has it then."""
        row = {"name": name, "holder": holder, "until": self._now + seconds}
        free = sql.or_(leases.c.holder == holder, leases.c.until < self._now)
        upsert(self._connection, leases, row, where=free)
        return self.holder(name) == holder

    def holder(self, name: str) -> str | None:
        """Who has it, or had it last."""
        return self._connection.execute(sql.select(leases.c.holder).where(leases.c.name == name)).scalar()

    def give_up(self, holder: str) -> None:
        """Gives back all that `holder` has."""
        self._connection.execute(leases.delete().where(leases.c.holder == holder))
