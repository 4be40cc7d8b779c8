"""The running normaliser: raw topics in, canonical topics and dead letters out.

**Guarantee: exactly once, for `read_committed` readers.** A batch's records and its end offsets in the consumer group
`upstream` are one Kafka transaction (see `transactional_sink`). A process that dies before the commit has written
nothing. The next owner of its partitions aborts the open transaction before it reads their offsets. No record is
skipped. A batch is written in the order of the raw records' Kafka timestamps, so a backlog keeps its order of time.

Ids and bytes depend on the raw record alone. A record that is in the raw topic twice is emitted twice, under one
`event_id`; the same holds for a record that an operator replays.

Any number of instances share the raw partitions (see `group_membership`); an instance without partitions waits. The
group's offsets are the only truth. The owner of a partition makes a new Spark checkpoint and resumes at the group's
offset; without one it starts at the earliest record. To replay, stop every instance, move the group's offsets with any
Kafka tool, and start.

One query holds all sources, so a batch has one commit.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from lozenge.contracts.topics import UPSTREAM
from lozenge.errors import TopicError
from lozenge.kafka import topic_admin
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.spark.session_provider import OwnJvm, SessionProvider, SessionRequest
from lozenge_upstream.normalise.mapping import Mapping, load
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_membership import UpstreamMembership
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
    # a mapping names its raw topic without the platform's prefix
    mappings = [m.model_copy(update={"topic": kafka.topics.prefixed(m.topic)}) for m in load(settings.mappings)]
    partitions = checked_partitions(kafka, mappings, settings.rekeys)
    # Spark takes seconds to start, so the rest is prepared concurrently
    sessions: SessionProvider = OwnJvm()
    request = SessionRequest(UPSTREAM, _task_slots(settings, mappings, partitions), settings.memory_mb, conf=SPARK)
    starting = ThreadPoolExecutor(1).submit(sessions.start, request)
    settle_ids(kafka, ["event"])
    log = logging.logger()
    if settings.is_demo_key:
        log.warning("card tokens use the demo key; set LOZENGE_UPSTREAM_TOKEN_KEY before a real card number comes")
    metrics = UpstreamMetrics(UPSTREAM, settings.instance)
    spark = starting.result()
    name = f"{UPSTREAM}-{settings.instance}"
    length = RealtimeBatchDuration(spark, settings.short_batches)
    queries = Queries(spark, kafka, settings, mappings, partitions, length)
    with (
        sessions.held(spark, "normalising", lambda: stop.requested),
        Reporter(metrics, kafka) as reporter,
        closing(Position(kafka, UPSTREAM)) as position,
        closing(
            UpstreamMembership(spark, kafka, UPSTREAM, name, [mapping.topic for mapping in mappings])
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
    log.info("upstream stopped")


def _task_slots(settings: UpstreamSettings, mappings: list[Mapping], partitions: dict[str, int]) -> int:
    """The number of concurrent tasks. Real-Time Mode needs one per raw partition, which may be more than the cores."""
    needed = sum(partitions[mapping.topic] for mapping in mappings) if settings.mode == "realtime" else 1
    return max(settings.cores, needed)


def checked_partitions(kafka: KafkaSettings, mappings: list[Mapping], rekeys: tuple[str, ...]) -> dict[str, int]:
    """The partition count of every topic. Raw topics must exist; our own must keep their contracts.

    Raises TopicError or BrokerUnavailable.
    """
    existing = topic_admin.partitions(kafka)
    missing = [f"{mapping.topic} (source {mapping.source})" for mapping in mappings if mapping.topic not in existing]
    if missing:
        raise TopicError(
            f"looking for the raw topics at {kafka.bootstrap}: there is no {', no '.join(missing)}",
            hint="create it, or remove the mapping that names it",
        )
    ours = {kafka.topics.events, kafka.topics.dead_letters(UPSTREAM), *map(kafka.topics.events_by, rekeys)}
    topic_admin.check_topics(kafka, [topic for topic in kafka.topics.platform_topics(rekeys) if topic.name in ours])
    return existing
