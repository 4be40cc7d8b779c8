"""One open transaction of the store: what is written here appears together or never."""

from functools import cached_property

import sqlalchemy as sql

from lozenge_downstream.store.arrivals import Arrivals
from lozenge_downstream.store.cases import Cases
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.history import History
from lozenge_downstream.store.leases import Leases
from lozenge_downstream.store.offsets import Outbox, Positions
from lozenge_downstream.store.overview import Overview
from lozenge_downstream.store.silences import Silences
from lozenge_downstream.store.tables import (
    arrivals,
    cases,
    deliveries,
    is_due,
    is_open,
    members,
    mutes,
    outbox,
    silences,
    sources,
)
from lozenge_downstream.store.verdicts import Verdicts


class Transaction:
    """Its parts, by subject; `now` is the moment that all of it happens, in seconds since the epoch."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self.now = now

    @cached_property
    def positions(self) -> Positions:
        """Where reading stands."""
        return Positions(self._connection)

    @cached_property
    def arrivals(self) -> Arrivals:
        """What was read."""
        return Arrivals(self._connection, self.now)

    @cached_property
    def cases(self) -> Cases:
        """What it was gathered into."""
        return Cases(self._connection, self.now)

    @cached_property
    def outbox(self) -> Outbox:
        """What is on its way to Kafka."""
        return Outbox(self._connection, self.now)

    @cached_property
    def deliveries(self) -> Deliveries:
        """What is on its way to channels."""
        return Deliveries(self._connection, self.now)

    @cached_property
    def silences(self) -> Silences:
        """What nobody wants to be told."""
        return Silences(self._connection, self.now)

    @cached_property
    def leases(self) -> Leases:
        """Who does what one alone may do."""
        return Leases(self._connection, self.now)

    @cached_property
    def history(self) -> History:
        """What is known of single alerts."""
        return History(self._connection)

    @cached_property
    def overview(self) -> Overview:
        """How cases stand."""
        return Overview(self._connection)

    @cached_property
    def verdicts(self) -> Verdicts:
        """What people said."""
        return Verdicts(self._connection, self.now)

    def forget(self, before: float) -> None:
        """Deletes what came to its end before `before`; what is still on its way stays."""
        execute = self._connection.execute
        going = sql.select(deliveries.c.notification_id).where(is_due)
        execute(outbox.delete().where(outbox.c.published_at < before, outbox.c.id.not_in(going)))
        execute(deliveries.delete().where(~is_due, deliveries.c.due_at < before))
        over = sql.select(cases.c.case_id).where(~is_open, cases.c.over_at < before)
        execute(members.delete().where(members.c.case_id.in_(over)))
        execute(cases.delete().where(~is_open, cases.c.over_at < before))
        kept = sql.select(members.c.alert_id)
        old = (arrivals.c.received_at < before, arrivals.c.outcome != "parked")
        nowhere = sql.or_(arrivals.c.alert_id.is_(None), arrivals.c.alert_id.not_in(kept))
        execute(arrivals.delete().where(*old, nowhere))
        execute(mutes.delete().where(mutes.c.at < before))
        execute(sources.delete().where(sources.c.until < before))
        execute(silences.delete().where(silences.c.ends_at < before))
