"""A sink in a test: its loop in a thread, or its parts without a loop, and what its tables have."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from lozenge.archive.archived_topics import ArchivedTopic, archived_topics
from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.queries import tables_in
from lozenge.archive.verification import PartitionProof
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.writers import TransactionalWriter
from lozenge.sink.commit_plan import CommitLimits
from lozenge.sink.decoded_batch import RecordReader
from lozenge.sink.spark_reader import SparkReader
from lozenge.sink.topic_sink import Committing, TopicSink
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge_deploy.observe.archive_report import proofs
from tests.integration import clients
from tests.streams import AUTH

LIMITS = CommitLimits(60.0, 64)
AT_ONCE = float("inf")


def declared(name: str, **more: object) -> ArchiveSink:
    """A sink that commits every second, into four buckets."""
    given = {"name": name, "kind": "archive", "title": "All", "owner": "tests", "buckets": 4, "commit_every": "1s"}
    return ArchiveSink.model_validate(given | more)


def topics_of(kafka: KafkaSettings, sink: ArchiveSink) -> dict[str, ArchivedTopic]:
    """What it takes of the broker, by view."""
    return {each.view: each for each in archived_topics(sink, kafka.topics, [AUTH], partitions(kafka))}


@contextmanager
def sharing(kafka: KafkaSettings, sink: ArchiveSink, reader: RecordReader) -> Iterator[Committing]:
    """What the sinks of all topics share; the last one that enters it may write."""
    ensure_topics(kafka, [kafka.topics.dead_letter_topic(sink.app)])
    with ExitStack() as stack:
        committed = stack.enter_context(closing(Committed(kafka, sink.app)))
        writer = TransactionalWriter(kafka, sink.app)
        writer.fence()
        yield Committing(kafka, sink.app, reader, committed, writer)


def sink_of(
    topic: ArchivedTopic, sink: ArchiveSink, archive: Path, shared: Committing, limits: CommitLimits = LIMITS
) -> TopicSink:
    """The sink of one topic."""
    return TopicSink(topic, table_of(topic, sink, archive), shared, limits)


def table_of(topic: ArchivedTopic, sink: ArchiveSink, archive: Path) -> ArchiveTable:
    """The table of one topic."""
    return ArchiveTable.open(archive / topic.topic, topic.topic, topic.view, topic.columns, sink.buckets)


def spark_reader(spark: SparkSession, kafka: KafkaSettings, sink: ArchiveSink) -> SparkReader:
    """The reader of a sink's process."""
    return SparkReader(spark, kafka, sink.app)


def ends_of(kafka: KafkaSettings, topic: ArchivedTopic) -> dict[int, int]:
    """The ends of a topic."""
    return clients.settled_ends(kafka, topic.topic)


def proved(kafka: KafkaSettings, archive: Path) -> Sequence[PartitionProof]:
    """The proofs of all tables of an archive."""
    return list(proofs(kafka, tables_in(archive), 256))
