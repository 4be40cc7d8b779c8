"""The newest figures of the demo: those of every app, of the generator and of the webhook receiver."""

import time

from confluent_kafka import Consumer, TopicPartition

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.feed.formats import RAW_JSON
from lozenge_deploy.observe.metrics_reader import RECORDS, MetricsReader, Reading, reading_of
from lozenge_deploy.observe.metrics_table import App, Snapshot

_CALL_SECONDS = 2.0


class ThroughputMeter(MetricsReader):
    """Reads the metrics topic and the ends of the raw topic; used by one thread, and never blocks it for long."""

    def __init__(self, kafka: KafkaSettings) -> None:
        super().__init__(kafka)
        self._topics = kafka.topics
        self._sent, self._received = App(), App()
        self._raw = Consumer(kafka.client(group_id="demo-view", enable_auto_commit=False))

    def read(self) -> None:
        """Reads what was published since the last call."""
        super().read()
        ends = [self._end_of(partition) for partition in range(self._topics.partitions)]
        _count(self._sent, sum(ends))

    def sent(self) -> Reading | None:
        """The generator: what has arrived in the raw topic."""
        return reading_of(self._sent, time.time())

    def received(self, count: int) -> Reading | None:
        """The webhook receiver, which has received `count` messages."""
        _count(self._received, count)
        return reading_of(self._received, time.time())

    def close(self) -> None:
        """Closes the connections."""
        super().close()
        self._raw.close()

    def _end_of(self, partition: int) -> int:
        raw = TopicPartition(self._topics.prefixed(RAW_JSON), partition)
        end: int = self._raw.get_watermark_offsets(raw, timeout=_CALL_SECONDS)[1]
        return end


def _count(app: App, records: int) -> None:
    """Counts records of something that reports nothing itself."""
    app.take(Snapshot("", "", "", time.time(), {RECORDS: float(records)}))
