"""Which alerts a job in Real-Time Mode has told of events that its group's offsets do not count as judged yet.

It tells each alert when it comes and commits its offsets once a batch, so after an end of any kind the events of the
last batch are judged again. What had been told of them stands in the alert topic, each under an id that is the same
after any replay: it is read back and left out. That holds once nothing of the predecessor writes any more, which
whoever starts a successor sees to.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from lozenge.contracts import topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import offsets_at, read

SKEW = timedelta(minutes=5)
"""By so much the clocks of those who write events and alerts may differ."""


def published_since(kafka: KafkaSettings, events: str, offsets: Mapping[int, int], alerts: str) -> frozenset[str]:
    """The ids of all alerts in the topic `alerts` that may be of `events` at or behind `offsets`, and of some more.

    Raises BrokerUnavailable.
    """
    since = _moment(kafka, events, offsets)
    if since is None:
        return frozenset()
    begin = offsets_at(kafka, alerts, topics.EVENT_PARTITIONS, since - SKEW)
    found = (dict(message.headers() or ()).get("ce_id") for message in read(kafka, alerts, begin))
    return frozenset(name.decode() for name in found if isinstance(name, bytes))


def _moment(kafka: KafkaSettings, topic: str, offsets: Mapping[int, int]) -> datetime | None:
    """When the first of the records from `offsets` on was written; None if there are none."""
    found = [message.timestamp()[1] / 1000 for message in read(kafka, topic, offsets, first=True)]
    return datetime.fromtimestamp(min(found), UTC) if found else None
