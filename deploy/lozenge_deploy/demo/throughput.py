"""The newest numbers of the whole demo: every app's own, what the feed has written, what the receiver has got."""

import time

from confluent_kafka import Consumer, TopicPartition

from lozenge.contracts import topics
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.observe.metrics_reader import RECORDS, MetricsReader, Reading, reading_of
from lozenge_deploy.observe.metrics_table import App, Snapshot

_CALL_SECONDS = 2.0


class Meter(MetricsReader):
    """Reads the metrics topic, and how much the feed has written; used by one thread, which it never holds up."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__(kafka)
        self._sent, self._received = App(), App()
        self._raw = Consumer(kafka.client(group_id="demo-view", enable_auto_commit=False))

    def read(self) -> None:
        """Takes in what was published since the last call."""
        super().read()
        ends = [self._end_of(partition) for partition in range(topics.RAW_PARTITIONS)]
        _count(self._sent, sum(ends))

    def sent(self) -> Reading | None:
        """The feed: what has arrived in the raw topic."""
        return reading_of(self._sent, time.time())

    def received(self, count: int) -> Reading | None:
        """The webhook receiver, which has taken `count` messages until now."""
        _count(self._received, count)
        return reading_of(self._received, time.time())

    def close(self) -> None:
        """Gives the connections back."""
        super().close()
        self._raw.close()

    def _end_of(self, partition: int) -> int:
        place = TopicPartition(topics.RAW_JSON, partition)
        end: int = self._raw.get_watermark_offsets(place, timeout=_CALL_SECONDS)[1]
        return end


def _count(app: App, records: int) -> None:
    """Notes how much has gone through something that reports nothing itself."""
    app.take(Snapshot("", "", "", time.time(), {RECORDS: float(records)}))
