"""The running normaliser: raw topics in, canonical topics and dead letters out.

**Guarantee: exactly once, for `read_committed` readers.** A batch's records and its end offsets in the consumer group
of the stream's normaliser are one Kafka transaction (see `transactional_sink`). A process that dies before the commit
has written nothing. The next owner of its partitions aborts the open transaction before it reads their offsets. No
record is skipped. A batch is written in the order of the raw records' Kafka timestamps, so a backlog keeps its order of
time.

Ids and bytes depend on the raw record alone. A record that is in the raw topic twice is emitted twice, under one
`event_id`; the same holds for a record that an operator replays.

Any number of instances share the raw partitions (see `group_membership`); an instance without partitions waits. The
group's offsets are the only truth. The owner of a partition makes a new Spark checkpoint and resumes at the group's
offset; without one it starts at the earliest record. To replay, use
`lozenge offsets upstream`.

One query holds all sources, so a batch has one commit. A source whose mapping is refused is no part of it: its raw
records wait and count as lag, and a metric and the log name it.
"""

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.kafka import topic_admin
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.spark.session_provider import OwnJvm, SessionProvider, SessionRequest
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, wrong_mappings
from lozenge_upstream.normalise.output_records import StreamOutput
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_membership import UpstreamMembership, transactional_id
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.partition_worker import PartitionWorker
from lozenge_upstream.streaming.queries import Queries
from lozenge_upstream.streaming.query_builder import SPARK
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer
from lozenge_upstream.streaming.transactional_sink import Sink

_ASSIGNMENT_POLL_SECONDS = 0.1


def run(settings: UpstreamSettings, kafka: KafkaSettings) -> None:
    """Normalises until SIGTERM or SIGINT, then ends after the current batch.

    Raises ConfigError, TopicError or BrokerUnavailable before anything is read. Raises Fenced if other instances own
    its partitions while it still writes. Raises LozengeError when the query fails; a restart resumes at the last
    commit.
    """
    stop = StopSignal()
    streams = Streams.load()
    target = output_of(streams.get(settings.stream), settings.rekeys, settings.merges, kafka.topics)
    app = target.app
    logging.configure(app, instance=settings.instance)
    partitions = checked_partitions(kafka, target)
    read = mapping_files.read(streams.mappings(target.stream), target.stream).on(kafka.topics, partitions)
    # Spark takes seconds to start, so the rest is prepared concurrently
    sessions: SessionProvider = OwnJvm()
    request = SessionRequest(app, _task_slots(settings, read.usable, partitions), settings.memory_mb, conf=SPARK)
    starting = ThreadPoolExecutor(1).submit(sessions.start, request)
    settle_ids(kafka, (), [target.stream.schema_by_text])
    log = logging.logger()
    if settings.is_demo_key:
        log.warning("tokens use the demo key; set LOZENGE_UPSTREAM_TOKEN_KEY before real data comes")
    metrics = UpstreamMetrics(app, settings.instance)
    spark = starting.result()
    mappings, waiting = in_force(runnable(spark, read), partitions, metrics)
    name = transactional_id(app, settings.instance)
    length = RealtimeBatchDuration(spark, settings.short_batches)
    queries = Queries(spark, kafka, settings, target, mappings, partitions, length)
    with (
        sessions.held(spark, "normalising", lambda: stop.requested),
        Reporter(metrics, kafka) as reporter,
        closing(Position(kafka, app, target, waiting)) as position,
        closing(
            UpstreamMembership(spark, kafka, app, name, [*(mapping.topic for mapping in mappings), *waiting])
        ) as membership,
    ):
        while not stop.requested:
            with membership.held.holding() as assignment:
                if assignment is None:
                    metrics.lag(0)
                else:
                    membership.fence_departed()
                    producer = TransactionalProducer(spark, kafka, name, assignment.generation)
                    with closing(Sink(producer)) as sink:
                        PartitionWorker(queries, settings.mode, sink, position).run(
                            assignment.partitions,
                            Progress(metrics, reporter),
                            ended=lambda: stop.requested or membership.held.is_revoked(assignment),
                        )
            time.sleep(_ASSIGNMENT_POLL_SECONDS)
    log.info(f"{app} stopped")


def _task_slots(settings: UpstreamSettings, mappings: list[Mapping], partitions: dict[str, int]) -> int:
    """The number of concurrent tasks. Real-Time Mode needs one per raw partition, which may be more than the cores."""
    needed = sum(partitions[mapping.topic] for mapping in mappings) if settings.mode == "realtime" else 1
    return max(settings.cores, needed)


def in_force(
    read: Mappings, existing: Collection[str], metrics: UpstreamMetrics
) -> tuple[list[Mapping], frozenset[str]]:
    """The mappings to run, and the raw topics of the others, whose records wait; the log and a metric name these.

    Raises ConfigError with every problem if there is none to run.
    """
    if not read.usable:
        raise wrong_mappings(read.refused)
    for mapping in read.usable:
        metrics.mapping(mapping.source, valid=True)
        metrics.skipped.count(mapping.source, {skip.name: 0 for skip in mapping.skip})
    for refused in read.refused:
        metrics.mapping(refused.name, valid=False)
        logging.logger().error(
            f"the mapping of {refused.name} is not in force, and the raw records of its topic wait",
            problems=refused.problems,
            hint="fix the mapping and restart upstream; no record is lost within the topic's retention",
        )
    return read.usable, frozenset(each.topic for each in read.refused if each.topic in existing)


def output_of(
    stream: StreamDefinition, rekeys: tuple[str, ...] | None, merges: tuple[str, ...], topics: Topics
) -> StreamOutput:
    """Where its events go, with copies by `rekeys` and `merges`; raises ConfigError for a key that it has not."""
    copies = stream.copies if rekeys is None else rekeys
    if unknown := [name for name in copies if name not in stream.rekeys]:
        has = ", ".join(stream.rekeys) or "no key but its first"
        raise ConfigError(f"LOZENGE_UPSTREAM_REKEYS: {', '.join(unknown)}: the stream {stream.name} has {has}")
    if unknown := [name for name in merges if name not in stream.keys]:
        has = ", ".join(stream.keys)
        raise ConfigError(f"LOZENGE_UPSTREAM_MERGES: {', '.join(unknown)}: the stream {stream.name} has {has}")
    return StreamOutput(stream, topics, tuple(copies), tuple(merges))


def checked_partitions(kafka: KafkaSettings, target: StreamOutput) -> dict[str, int]:
    """The partition count of every topic; our own must keep their contracts. Raises TopicError or BrokerUnavailable."""
    existing = topic_admin.partitions(kafka)
    topic_admin.check_topics(kafka, target.contracts())
    return existing
