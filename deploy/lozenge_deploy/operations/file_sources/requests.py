"""Requests of file sources: each in one transaction with its audit record, after what others have requested."""

from collections.abc import Callable, Mapping
from typing import Any

from lozenge.contracts.record import Record
from lozenge.errors import TopicError
from lozenge.file_sources.definition import FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS, positions_topic, topics_of
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.writers import TransactionalWriter, exclusively
from lozenge.process.waiting import wait_until
from lozenge.protocol import file_positions, source_requests
from lozenge.protocol.file_positions import FilePosition
from lozenge.protocol.source_requests import SourceRow, SourceState
from lozenge_deploy.operations import audit

VISIBLE_SECONDS = 10.0


def rows(kafka: KafkaSettings) -> Mapping[str, SourceRow]:
    """All that is deployed and requested, by key; raises BrokerUnavailable."""
    topic = kafka.topics.control.sources
    if topic not in partitions(kafka):
        return {}
    found = read_latest(kafka, topic, check=source_requests.decode)
    return {row.key.decode(): source_requests.decode(row.key, row.value) for row in found}


def positions_of(kafka: KafkaSettings, source: str) -> list[FilePosition]:
    """How far each file of a source was copied, by path; none before its first start. Raises BrokerUnavailable."""
    topic = positions_topic(kafka.topics, source).name
    if topic not in partitions(kafka):
        return []
    found = read_latest(kafka, topic, range(FILE_PARTITIONS), check=file_positions.decode)
    decoded = [file_positions.decode(row.key, row.value) for row in found]
    return sorted(decoded, key=lambda position: position.path)


def prepare_topics(kafka: KafkaSettings, source: FileSource, *, dry_run: bool = False) -> None:
    """Creates what a source writes next to the raw topic; a `dry_run` does not.

    Raises TopicError if the raw topic does not exist, and BrokerUnavailable.
    """
    topic = kafka.topics.prefixed(source.topic)
    if topic not in partitions(kafka):
        raise TopicError(
            f"deploying the file source {source.name}: its topic {topic} does not exist",
            hint="name a raw topic that the mapping of a stream reads; `lozenge stream ls` lists them",
        )
    if not dry_run:
        ensure_topics(kafka, topics_of(kafka.topics, source.name))


def make(
    kafka: KafkaSettings,
    source: str,
    decide: Callable[[SourceState], list[SourceRow]],
    *,
    what: str,
    detail: Mapping[str, Any],
    dry_run: bool = False,
) -> list[SourceRow]:
    """Makes the requests on which `decide` decides, and returns them once every reader sees them.

    A `dry_run` only decides. Raises what `decide` raises, and BrokerUnavailable.
    """
    if dry_run:
        return decide(source_requests.state_of(source, rows(kafka)))
    ensure_topics(kafka, kafka.topics.control.contracts())

    def change(writer: TransactionalWriter) -> list[SourceRow]:
        made = decide(source_requests.state_of(source, rows(kafka)))
        writer.write([*_records(kafka, made), audit.kafka_record(kafka, f"source {what}", source, detail)])
        wait_until(lambda: all(rows(kafka).get(_key(row)) == row for row in made), VISIBLE_SECONDS)
        return made

    return exclusively(kafka, f"lozenge-source-{source}", change)


def retire(kafka: KafkaSettings, source: str) -> None:
    """Withdraws what is requested of a source: no instance runs any more. Its releases and positions stay."""
    ensure_topics(kafka, kafka.topics.control.contracts())

    def change(writer: TransactionalWriter) -> None:
        withdrawn = Record(kafka.topics.control.sources, 0, source.encode(), None)
        writer.write([withdrawn, audit.kafka_record(kafka, "source retire", source, {})])
        wait_until(lambda: source not in rows(kafka), VISIBLE_SECONDS)

    exclusively(kafka, f"lozenge-source-{source}", change)


def _records(kafka: KafkaSettings, made: list[SourceRow]) -> list[Record]:
    return [source_requests.record(kafka.topics.control.sources, row) for row in made]


def _key(row: SourceRow) -> str:
    return source_requests.key_of(row).decode()
