"""Getting raw records into Kafka: as fast as the broker takes them, in order, none twice.

Refuses to wait in silence: what the broker has not acknowledged in the end is counted in `failed`.
"""

from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, Message, Producer

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import RAW_PARTITIONS, Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge_deploy.demo.feed.generator import Raw

FLUSH_SECONDS = 30.0
_RETRY_SECONDS = 0.1
_SERVE_EVERY = 1000  # records between two looks at delivery errors


class Sender:
    """A producer for one raw topic; raises BrokerUnavailable or TopicError at once if that cannot work.

    Keys decide the partition and the record's Kafka timestamp is the time of sending. `stopped` is asked
    before every record; after it turned true only `close` sends what is already queued.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, stopped: Callable[[], bool]) -> None:
        check_topics(kafka, [Topic(topic, RAW_PARTITIONS)])
        self.failed = 0
        self._topic = topic
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
        """Sends `records` until they end or `stopped`; blocks while the broker cannot follow."""
        records = iter(records)
        n = 0
        while not self._stopped() and (raw := next(records, None)) is not None:
            self.send_one(raw)
            n += 1
            if n % _SERVE_EVERY == 0:
                self._producer.poll(0)

    def send_one(self, raw: Raw) -> None:
        """Queues one record; if the queue is full, waits for room or, once `stopped`, gives the record up."""
        partition = partition_of(raw.key, RAW_PARTITIONS)
        while True:
            try:
                self._producer.produce(self._topic, raw.value, raw.key, partition)
                return
            except BufferError:
                self._producer.poll(_RETRY_SECONDS)
                if self._stopped():
                    self.failed += 1
                    return

    def close(self) -> None:
        """Waits up to `FLUSH_SECONDS` for the broker; whatever is still queued then counts as failed."""
        self.failed += self._producer.flush(FLUSH_SECONDS)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed += 1
