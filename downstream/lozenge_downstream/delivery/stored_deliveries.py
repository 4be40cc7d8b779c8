"""The deliveries of one channel in the store: which are due, and how attempts to send them ended."""

from collections import Counter
from collections.abc import Sequence

from lozenge.contracts.topics import Topics
from lozenge.errors import Poison
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge.process.logging import logger
from lozenge_downstream.dead_letter_encoder import dead_letter_record
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.store import Store
from lozenge_downstream.store.deliveries import Attempt, Delivery
from lozenge_downstream.store.tables import DUE, FAILED, SENT


class Undeliverable(Poison):
    """A channel refused a message permanently, or in all of its attempts."""


class StoredDeliveries:
    """Reads and records the deliveries of the channel `name`; blocks for as long as the store does."""

    def __init__(self, name: str, store: Store, topics: Topics, metrics: NotifierMetrics) -> None:
        self._name, self._store, self._topics, self._metrics = name, store, topics, metrics
        metrics.deliveries(name)

    def due(self, limit: int) -> list[Delivery]:
        """At most `limit` deliveries that are due; none while the channel is disabled."""
        with self._store.reading() as t:
            return [] if self._name in t.deliveries.disabled() else t.deliveries.due(self._name, limit)

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Records how attempts ended, in one transaction: retries, dead letters, and a channel that is disabled."""
        failed = [a for a in attempts if a.state == FAILED]
        with self._store.transaction(exclusive=bool(failed)) as t:
            t.deliveries.settle(attempts)
            for attempt in failed:
                d = attempt.delivery
                error = Undeliverable(f"channel {d.channel}: {attempt.error} ({d.attempts + 1} attempts)")
                sent = t.outbox.by_id(d.notification_id)
                record = ReceivedRecord(sent.topic, sent.partition, sent.seq, sent.key, sent.value, sent.headers)
                t.outbox.send([dead_letter_record(record, "deliver", error, self._topics, t.outbox.number, t.now)])
            for attempt in attempts:
                if attempt.disable:
                    t.deliveries.disable(attempt.delivery.channel, str(attempt.error))
        states = Counter(attempt.state for attempt in attempts)
        self._metrics.deliveries(self._name, sent=states[SENT], retried=states[DUE], failed=states[FAILED])
        self._metrics.dead_letters(len(failed), "deliver")
        for attempt in attempts:
            if attempt.disable or attempt.state == FAILED:
                logger().error(
                    "channel disabled" if attempt.disable else "delivery failed permanently",
                    channel=attempt.delivery.channel,
                    notification_id=attempt.delivery.notification_id,
                    error=attempt.error,
                )
