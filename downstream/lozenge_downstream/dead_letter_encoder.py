"""Dead letters of the notifier: a record that it cannot process, with the reason in its headers."""

from dataclasses import replace
from datetime import UTC, datetime

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.dead_letters import dead_letter_headers, truncated_headers
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import Number, Outgoing, ReceivedRecord

TRUNCATED_BYTES = 64 * 1024
"""What remains of the value of a dead letter that Kafka finds too large; of its key and each header, a 16th of it."""


def dead_letter_record(
    record: ReceivedRecord, stage: str, error: Exception, topics: Topics, number: Number, now: float
) -> Outgoing:
    """`record` byte for byte with the reason in its headers, for the notifier's dead-letter topic."""
    topic = topics.dead_letters(DOWNSTREAM)
    partition = partition_of(record.key or b"", topics.partitions)
    explained = dead_letter_headers(
        record.headers,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        app=DOWNSTREAM,
        stage=stage,
        error=error,
        failed_at=datetime.fromtimestamp(now, UTC),
    )
    return Outgoing(
        topic,
        partition,
        number(topic, partition),
        f"{stage} {record.topic}/{record.partition}/{record.offset}",
        record.key,
        record.value,
        explained,
    )


def truncate(dead_letter: Outgoing) -> Outgoing:
    """The beginning of a dead letter that is too large, with its number; a header says how large it was."""
    key, value, some = dead_letter.key or b"", dead_letter.value or b"", TRUNCATED_BYTES // 16
    explained = truncated_headers(dead_letter.headers, len(value), some)
    return replace(dead_letter, key=key[:some], value=value[:TRUNCATED_BYTES], headers=explained)
