"""The producer of raw records: as fast as the broker accepts them, in order, none twice.

Records that the broker has not acknowledged in the end are counted in `failed`.
"""

from collections.abc import Callable, Collection, Iterable

from confluent_kafka import KafkaError, Message, Producer

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.kafka.writers import produce
from lozenge_deploy.demo.feed.written_records import Raw

FLUSH_SECONDS = 30.0
_SERVE_EVERY = 1000  # records between two polls for delivery errors


class RecordProducer:
    """A producer for raw topics, named without their prefix; raises BrokerUnavailable or TopicError if it cannot send.

    The key decides the partition, and the Kafka timestamp is the time of sending. `stopped` is called before every
    record; once it is true, only `close` sends the queued records.
    """

    def __init__(self, kafka: KafkaSettings, topics: Collection[str], stopped: Callable[[], bool]) -> None:
        self._names, self._partitions = {topic: kafka.topics.prefixed(topic) for topic in topics}, kafka.partitions
        check_topics(kafka, [Topic(name, kafka.partitions) for name in self._names.values()])
        self.failed = 0
        self._stopped = stopped
        self._producer = Producer(
            kafka.client(
                enable_idempotence=True,
                linger_ms=5,
                batch_size=262_144,
                queue_buffering_max_messages=100_000,
                # Only failures call back, so a million successes cost nothing.
                delivery_report_only_error=True,
            )
            | {"on_delivery": self._on_delivery}
        )

    def send(self, records: Iterable[Raw]) -> None:
        """Sends `records` until they end or `stopped`; blocks while the broker is slower."""
        records = iter(records)
        n = 0
        while not self._stopped() and (raw := next(records, None)) is not None:
            self.send_one(raw)
            n += 1
            if n % _SERVE_EVERY == 0:
                self._producer.poll(0)

    def send_one(self, raw: Raw) -> None:
        """Queues one record; if the queue is full, waits for space or, once `stopped`, counts the record as failed."""
        record = Record(self._names[raw.topic], partition_of(raw.key, self._partitions), raw.key, raw.value)
        self.failed += not produce(self._producer, record, stopped=self._stopped)

    def close(self) -> None:
        """Waits up to `FLUSH_SECONDS` for the broker; records that are still queued then count as failed."""
        self.failed += self._producer.flush(FLUSH_SECONDS)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed += 1
