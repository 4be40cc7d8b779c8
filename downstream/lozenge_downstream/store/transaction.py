"""One open transaction of the store: what is written here appears together or never."""

from functools import cached_property

import sqlalchemy as sql

from lozenge_downstream.store.alert_history import History
from lozenge_downstream.store.case_queries import CaseQueries
from lozenge_downstream.store.cases import Cases
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.feedback import Verdicts
from lozenge_downstream.store.leases import Leases
from lozenge_downstream.store.positions import Outbox, Positions
from lozenge_downstream.store.received_alerts import ReceivedAlerts
from lozenge_downstream.store.retention import Retention
from lozenge_downstream.store.silences import Silences


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
    def arrivals(self) -> ReceivedAlerts:
        """What was read."""
        return ReceivedAlerts(self._connection, self.now)

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
    def overview(self) -> CaseQueries:
        """How cases stand."""
        return CaseQueries(self._connection)

    @cached_property
    def verdicts(self) -> Verdicts:
        """What people said."""
        return Verdicts(self._connection, self.now)

    def forget(self, forgetting: Retention) -> bool:
        """Deletes some of what came to its end; whether there may be more."""
        return forgetting.step(self._connection)
