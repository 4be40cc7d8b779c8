"""Where the requests of file sources are, the topics that they need, and the positions of their files."""

from lozenge.errors import TopicError
from lozenge.file_sources.definition import FileSource
from lozenge.file_sources.topics import FILE_PARTITIONS, positions_topic, topics_of
from lozenge.kafka.compacted_topic import read_latest
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.protocol import file_positions
from lozenge.protocol.file_positions import FilePosition
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest
from lozenge_deploy.operations.declarations.requests import Requests


def requests_of_sources(kafka: KafkaSettings) -> Requests[SourceRelease, SourceRequest]:
    """The releases and requests of file sources."""
    return Requests(kafka, kafka.topics.control.sources, SOURCES, lambda source: f"lozenge-source-{source}")


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
