"""Dead letters as Kafka records: a failed record with its own bytes, or a failure without a record as JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from lozenge.contracts.dead_letters import dead_letter_headers
from lozenge.contracts.record import Record
from lozenge.job.batch_result import BatchResult, FailedRecord, FailureWithoutRecord
from lozenge.job.identity import Identity
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import fetch

NO_OFFSET = -1
"""The offset in the headers of a dead letter without an input record."""


def dead_letters(kafka: KafkaSettings, identity: Identity, result: BatchResult) -> Iterator[Record]:
    """The dead letter of each failure. Reads the bytes of failed records from the input; raises TopicError if gone."""
    failed = result.failed_records
    originals = fetch(kafka, identity.input, [record.position for record in failed]) if failed else []
    for record, original in zip(failed, originals, strict=True):
        yield of_record(identity, original, record)
    yield from (of_failure(identity, failure) for failure in result.failures_without_record)


def of_record(identity: Identity, original: Any, failed: FailedRecord) -> Record:
    """The dead letter of a confluent-kafka message: its key, value and headers, and the reason."""
    headers = dead_letter_headers(
        original.headers() or (),
        topic=original.topic(),
        partition=failed.partition,
        offset=failed.offset,
        app=identity.app,
        stage=failed.stage,
        error=failed.error,
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, failed.partition, original.key(), original.value(), headers)


def of_failure(identity: Identity, failure: FailureWithoutRecord) -> Record:
    """The dead letter of a failure without a record: its key, its JSON and the reason."""
    headers = dead_letter_headers(
        (),
        topic=identity.state,
        partition=failure.partition,
        offset=NO_OFFSET,
        app=identity.app,
        stage=failure.stage,
        error=failure.error,
        failed_at=datetime.now(UTC),
    )
    return Record(identity.dead_letters, failure.partition, failure.key, failure.value, headers)
