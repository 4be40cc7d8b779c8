"""Dead letters of a sink: records that it cannot decode."""

from datetime import UTC, datetime
from typing import Any

from lozenge.contracts.dead_letters import dead_letter_headers
from lozenge.contracts.record import Record
from lozenge.errors import DecodeError
from lozenge.kafka.settings import KafkaSettings


def dead_letter(kafka: KafkaSettings, app: str, original: Any, error: DecodeError) -> Record:
    """The dead letter of a confluent-kafka message that the sink `app` has read: byte for byte, and the reason."""
    partition = original.partition()
    headers = dead_letter_headers(
        original.headers() or (),
        topic=original.topic(),
        partition=partition,
        offset=original.offset(),
        app=app,
        stage="decode",
        error=error,
        failed_at=datetime.now(UTC),
    )
    home = kafka.topics.dead_letters(app)
    return Record(home, partition % kafka.partitions, original.key(), original.value(), headers)
