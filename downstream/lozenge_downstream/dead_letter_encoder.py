"""Dead letters of the notifier: a record that it cannot process, with the reason in its headers."""

from dataclasses import replace
from datetime import UTC, datetime

from lozenge.contracts.dead_letters import dead_letter_headers, truncated_headers
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import APP, Number, Outgoing, Record

CUT_BYTES = 64 * 1024
"""Of its record that a letter keeps which Kafka finds too large, and of its key and headers a 16th each."""


def dead_letter(record: Record, stage: str, error: Exception, topics: Topics, number: Number, now: float) -> Outgoing:
    """`record` byte for byte with the reason in its headers, for the notifier's dead-letter topic."""
    topic = topics.dead_letters(APP)
    partition = partition_of(record.key or b"", topics.partitions)
    explained = dead_letter_headers(
        record.headers,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        app=APP,
        stage=stage,
        error=error,
        failed_at=datetime.fromtimestamp(now, UTC),
    )
    seq = number(topic, partition)
    return Outgoing(
        topic,
        partition,
        seq,
        f"{stage} {record.topic}/{record.partition}/{record.offset}",
        record.key,
        record.value,
        explained,
    )


def cut(letter: Outgoing) -> Outgoing:
    """The beginning of a letter that is too large, which says so; under the number that it had."""
    key, value, some = letter.key or b"", letter.value or b"", CUT_BYTES // 16
    explained = truncated_headers(letter.headers, len(value), some)
    return replace(letter, key=key[:some], value=value[:CUT_BYTES], headers=explained)
