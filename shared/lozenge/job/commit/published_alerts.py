"""Which alerts a job in Real-Time Mode has published of events after its committed offsets.

Such a job publishes each alert at once and commits its offsets once per batch. After a crash or a stop the events of
the last batch are processed again. A recovery read of the alert topic finds the ids published since, and the next job
skips them: an alert's id is the same after any replay. Nothing of the previous job may still be writing; the agent
ensures that before it starts the next one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_since, write_times

CLOCK_SKEW = timedelta(minutes=5)
"""Allowance for the difference between the clocks of those who write events and alerts."""


def published_since(kafka: KafkaSettings, events: str, offsets: Mapping[int, int], alerts: str) -> frozenset[str]:
    """The ids of all alerts in the topic `alerts` that may be of `events` from `offsets` on, and of some earlier ones.

    Raises BrokerUnavailable.
    """
    since = _first_write(kafka, events, offsets)
    if since is None:
        return frozenset()
    published = read_since(kafka, alerts, kafka.topics.partitions, since - CLOCK_SKEW)
    ids = (dict(message.headers() or ()).get("ce_id") for message in published)
    return frozenset(alert_id.decode(errors="replace") for alert_id in ids if isinstance(alert_id, bytes))


def _first_write(kafka: KafkaSettings, topic: str, offsets: Mapping[int, int]) -> datetime | None:
    """When the first of the records from `offsets` on was written; None if there are none."""
    written = write_times(kafka, topic, offsets).values()
    return datetime.fromtimestamp(min(written), UTC) if written else None
