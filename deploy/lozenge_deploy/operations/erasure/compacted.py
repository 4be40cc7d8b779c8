"""Compacted topics: tombstones for keys that name a subject, and values of others without the word.

The broker deletes what they replace when it compacts the topic. It never compacts the segment to which it writes, so a
partition to which nobody writes any more keeps the old records. Another run after some time begins a segment there.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from lozenge.contracts.record import Record
from lozenge.contracts.topics import MOST_LAG, Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import configurations, configure
from lozenge.kafka.topic_reader import read
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.data_subject import ERASED, DataSubject
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found

_UNLIMITED = 2**63 - 1


def naming(kafka: KafkaSettings, topic: str, partitions: int, subject: DataSubject) -> list[Record]:
    """What replaces each live record that names the subject; raises BrokerUnavailable."""
    latest = dict[tuple[int, bytes], Record]()
    for message in read(kafka, topic, dict.fromkeys(range(partitions), 0), settled=True):
        place = message.partition() or 0, message.key() or b""
        if (value := message.value()) is not None and (record := _replacing(topic, *place, value, subject)) is not None:
            latest[place] = record
        else:
            latest.pop(place, None)
    return list(latest.values())


def erase_topic(
    plan: Plan,
    place: str,
    topic: Topic,
    writing: Callable[[], AbstractContextManager[TransactionalWriter]],
) -> Line:
    """Replaces the live records of a topic that name the subject, by the one writer that may; a second call waits.

    Raises BrokerUnavailable, TopicError, and what `writing` raises.
    """
    kafka, subject = plan.kafka, plan.subject
    made = naming(kafka, topic.name, topic.partitions, subject)
    if plan.dry_run:
        return found(place, len(made), _said(made), dry_run=True)
    if made:
        with writing() as writer:
            made = naming(kafka, topic.name, topic.partitions, subject)
            writer.write(made)
        return found(place, len(made), _said(made), dry_run=False, until=gone_by(kafka, topic))
    if old := stale(kafka, topic.name, topic.partitions, subject):
        begin_segments(kafka, topic.name, old)
        return Line(place, Outcome.EXPIRES, what="replaced before, and not compacted yet", until=gone_by(kafka, topic))
    return Line(place, Outcome.NOTHING)


def stale(kafka: KafkaSettings, topic: str, partitions: int, subject: DataSubject) -> set[int]:
    """The partitions in which any record has the value, also one that was replaced or aborted.

    Tombstones have it in their keys, until they are deleted too. Raises BrokerUnavailable.
    """
    found = read(kafka, topic, dict.fromkeys(range(partitions), 0), isolation="read_uncommitted")
    return {
        message.partition() or 0
        for message in found
        if subject.is_in_bytes(message.key() or b"") or subject.is_in_bytes(message.value() or b"")
    }


def begin_segments(kafka: KafkaSettings, topic: str, partitions: Collection[int]) -> None:
    """Writes an aborted record into each partition, which begins a segment if the present one is old enough."""
    writer = TransactionalWriter(kafka, f"lozenge-erasure-{topic}")
    writer.fence()
    writer.abort_in([Record(topic, partition, f'["{ERASED}"]'.encode(), None) for partition in partitions])


def gone_by(kafka: KafkaSettings, topic: Topic) -> datetime:
    """When what is replaced now has been compacted, and its tombstones deleted, if the topic is written to.

    A topic without a longest lag gets that of its contract. Raises BrokerUnavailable, TopicError.
    """
    present = configurations(kafka, [topic.name])[topic.name]
    if int(present[MOST_LAG]) >= _UNLIMITED:
        configure(kafka, topic.name, MOST_LAG, topic.config[MOST_LAG])
        present = present | {MOST_LAG: topic.config[MOST_LAG]}
    lag, kept = (timedelta(milliseconds=int(present[name])) for name in (MOST_LAG, "delete.retention.ms"))
    return datetime.now(UTC) + 2 * lag + kept


def _replacing(topic: str, partition: int, key: bytes, value: bytes, subject: DataSubject) -> Record | None:
    """The record that replaces this one; None if it does not name the subject."""
    if subject.is_in(key.decode(errors="replace")):
        return Record(topic, partition, key, None)
    if not subject.is_in(text := value.decode(errors="surrogateescape")):
        return None
    return Record(topic, partition, key, subject.erased_from(text).encode(errors="surrogateescape"))


def _said(made: Sequence[Record]) -> str:
    masked = sum(record.value is not None for record in made)
    named = f", of which {masked} are of others and lose the word alone" if masked else ""
    return f"live records{named}; the broker compacts the topic"
