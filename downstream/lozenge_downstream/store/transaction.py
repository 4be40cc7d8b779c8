"""One open transaction of the store: what is written here appears together or never."""

from functools import cached_property

import sqlalchemy as sql

from lozenge.protocol.data_subject import DataSubject
from lozenge_downstream.store import erasure
from lozenge_downstream.store.cases import Cases
from lozenge_downstream.store.deliveries import Deliveries
from lozenge_downstream.store.feedback import Feedback
from lozenge_downstream.store.inhibitors import Inhibitors
from lozenge_downstream.store.leases import Leases
from lozenge_downstream.store.positions import Outbox, ReadPositions
from lozenge_downstream.store.queries.alert_history import AlertHistory
from lozenge_downstream.store.queries.case_queries import CaseQueries
from lozenge_downstream.store.received_alerts import ReceivedAlerts
from lozenge_downstream.store.retention import Retention
from lozenge_downstream.store.routing_versions import RoutingVersions
from lozenge_downstream.store.silences import Silences


class Transaction:
    """Its parts, by subject. `now` is the time of all that it writes, in seconds since the epoch."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self.now = now

    @cached_property
    def positions(self) -> ReadPositions:
        """The next offset to read of each alert partition."""
        return ReadPositions(self._connection)

    @cached_property
    def received_alerts(self) -> ReceivedAlerts:
        """The records that were read, with their outcomes."""
        return ReceivedAlerts(self._connection, self.now)

    @cached_property
    def cases(self) -> Cases:
        """The cases, their alerts, and why these are muted."""
        return Cases(self._connection, self.now)

    @cached_property
    def inhibitors(self) -> Inhibitors:
        """The alerts that inhibit others."""
        return Inhibitors(self._connection, self.now)

    @cached_property
    def outbox(self) -> Outbox:
        """The records on their way to Kafka."""
        return Outbox(self._connection, self.now)

    @cached_property
    def deliveries(self) -> Deliveries:
        """The notifications on their way to channels."""
        return Deliveries(self._connection, self.now)

    @cached_property
    def silences(self) -> Silences:
        """The silences of operators."""
        return Silences(self._connection, self.now)

    @cached_property
    def routing_versions(self) -> RoutingVersions:
        """The versions of the routing file."""
        return RoutingVersions(self._connection, self.now)

    @cached_property
    def leases(self) -> Leases:
        """The leases on what one notifier alone may do."""
        return Leases(self._connection, self.now)

    @cached_property
    def alert_history(self) -> AlertHistory:
        """The history of single alerts, for operators."""
        return AlertHistory(self._connection, self.now)

    @cached_property
    def case_queries(self) -> CaseQueries:
        """The state of cases, for operators."""
        return CaseQueries(self._connection, self.now)

    @cached_property
    def feedback(self) -> Feedback:
        """The feedback of analysts."""
        return Feedback(self._connection, self.now)

    def delete_expired(self, retention: Retention) -> bool:
        """Deletes some expired rows; returns whether there may be more."""
        return retention.step(self._connection)

    def erase(self, subject: DataSubject) -> erasure.Erased:
        """Erases a subject from every table; the transaction must be exclusive. `Store.reclaim` frees the bytes."""
        return erasure.erase(self._connection, subject)
