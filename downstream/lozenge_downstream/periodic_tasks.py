"""What a notifier does from time to time.

It looks for silent detectors and channels that do not deliver, counts what waits, and deletes what expired.

All times are monotonic, in seconds.
"""

from collections.abc import Callable

from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.lease_holder import RELAY, LeaseHolder
from lozenge_downstream.model import HOUR
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.store import Retention, Store

RETENTION_SECONDS, SILENCE_CHECK_SECONDS, GAUGE_SECONDS = 3600.0, 60.0, 10.0
ALARM_ATTEMPTS = 4
"""Failed attempts of a message after which an alarm names its channel: after two minutes by default."""


class PeriodicTasks:
    """The periodic tasks of one notifier, in transactions of their own. The notifier's loop runs them.

    `keep_seconds` is the retention of the store. `started` is the time of the start.
    """

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        leases: LeaseHolder,
        metrics: NotifierMetrics,
        *,
        keep_seconds: float,
        started: float,
    ) -> None:
        self._store, self._pipeline, self._leases, self._metrics = store, pipeline, leases, metrics
        self._keep_seconds = keep_seconds
        self._retention: Retention | None = None
        self._retention_at = self._gauges_at = 0.0
        self._silence_check_at = started + SILENCE_CHECK_SECONDS  # alerts that are not read yet look like silence

    def run_due(self, now: float, lag: Callable[[], int]) -> None:
        """Runs the tasks that are due. Only without a `lag` it is known which detectors are silent."""
        if now >= self._silence_check_at and not lag():
            self._silence_check_at = now + SILENCE_CHECK_SECONDS
            with self._store.transaction(exclusive=True) as t:
                self._pipeline.raise_silence_alarms(t)
        if now >= self._gauges_at:
            self._gauges_at = now + GAUGE_SECONDS
            self._set_gauges()
            self._raise_channel_alarms()
        if now >= self._retention_at:
            self._delete_expired(now)

    def _set_gauges(self) -> None:
        """The holder of the relay's lease alone reports what all notifiers of this store share."""
        if not self._leases.holds(RELAY):
            self._metrics.notifications({}, {}, {})
            return
        with self._store.reading() as t:
            self._metrics.notifications(
                t.deliveries.orphans([]), t.received_alerts.rate_limited(), t.feedback.precision()
            )

    def _raise_channel_alarms(self) -> None:
        if not self._leases.holds(RELAY):
            return
        with self._store.reading() as t:
            troubles = t.deliveries.troubles(t.now - HOUR, ALARM_ATTEMPTS)
        if troubles:
            with self._store.transaction(exclusive=True) as t:
                self._pipeline.raise_channel_alarms(troubles, t)

    def _delete_expired(self, now: float) -> None:
        """One step of the retention. Records and due cases come before the next one."""
        # exclusive: else half of what a replay sends again could be deleted
        with self._store.transaction(exclusive=True) as t:
            self._retention = self._retention or Retention(t.now - self._keep_seconds)
            if not t.delete_expired(self._retention):
                self._retention = None
                self._retention_at = now + RETENTION_SECONDS
