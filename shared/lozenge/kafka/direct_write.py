"""A few records that are written directly: by a start, or by the command of a person who waits."""

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lozenge.contracts.record import Record
from lozenge.kafka.settings import KafkaSettings

DEADLINE_SECONDS = 10.0


def write_directly(kafka: KafkaSettings, records: Iterable[Record]) -> str:
    """Writes a few records and waits until the broker has them; returns "", or what went wrong."""
    # No idempotent producer: it waits half a second for its id. So a record may be written twice.
    producer = Producer(kafka.client(acks="all", message_timeout_ms=int(DEADLINE_SECONDS * 1000)))
    failures = list[str]()

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    try:
        for record in records:
            producer.produce(record.topic, record.value, record.key, record.partition, on_delivery=delivered)
        left = producer.flush(DEADLINE_SECONDS)
    except (BufferError, KafkaException) as error:
        return str(error)
    return failures[0] if failures else "no acknowledgement" if left else ""
