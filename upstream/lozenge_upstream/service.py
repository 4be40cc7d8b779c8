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
offset; without one it starts at the earliest record. `lozenge offsets` with the name of the normaliser replays.

One query holds all sources, so a batch has one commit. A source whose mapping is refused is no part of it: its raw
records wait and count as lag, and a metric and the log name it.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from pyspark.sql import SparkSession

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import FollowedStream
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.spark.session_provider import OwnJvm, SessionProvider, SessionRequest
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_upstream.normalise.mapping_files import wrong_mappings
from lozenge_upstream.normalise.output_records import StreamOutput
from lozenge_upstream.releases.read_release import ReleaseReader, UpstreamRelease
from lozenge_upstream.releases.stream_releases import StreamReleases
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_membership import UpstreamMembership, transactional_id
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.held_assignment import Assignment
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
    folder = streams.get(settings.stream)
    app = folder.app
    logging.configure(app, instance=settings.instance)
    metrics = UpstreamMetrics(app, settings.instance)

    def output(stream: StreamDefinition) -> StreamOutput:
        return output_of(checked_app(stream, app), settings.rekeys, settings.merges, kafka.topics)

    reader = ReleaseReader(kafka, streams.folder / folder.name, output)
    with closing(FollowedStream(kafka, folder.name)) as followed:
        releases = StreamReleases(kafka, followed, reader, metrics.stream_release.refused)
        first = releases.first()
        slots = _task_slots(settings, first)
        # Spark takes seconds to start, so what does not need it is done concurrently
        sessions: SessionProvider = OwnJvm()
        starting = ThreadPoolExecutor(1).submit(
            sessions.start, SessionRequest(app, slots, settings.memory_mb, conf=SPARK)
        )
        log = logging.logger()
        if settings.is_demo_key and first.target.stream.tokens:
            log.warning("tokens use the demo key; set LOZENGE_UPSTREAM_TOKEN_KEY before real data comes")
        releases.begin(starting, slots if settings.mode == "realtime" else None, first)
        spark = starting.result()
        show_in_force(releases.in_force, metrics)
        with sessions.held(spark, "normalising", lambda: stop.requested), Reporter(metrics, kafka) as reporter:
            Instance(spark, kafka, settings, releases, metrics, reporter).run(lambda: stop.requested)
    log.info(f"{app} stopped")


class Instance:
    """One instance of a normaliser: it normalises the raw partitions that it holds, by the release in force."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        settings: UpstreamSettings,
        releases: StreamReleases,
        metrics: UpstreamMetrics,
        reporter: Reporter,
    ) -> None:
        self._spark, self._kafka, self._settings, self._releases = spark, kafka, settings, releases
        self._metrics, self._reporter = metrics, reporter
        self._length = RealtimeBatchDuration(spark, settings.short_batches)
        self._app = metrics.app
        self._name = transactional_id(self._app, settings.instance)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Normalises until it is `stopped`; raises as the module's `run` does."""
        while not stopped():
            topics = self._releases.in_force.topics
            with closing(UpstreamMembership(self._spark, self._kafka, self._app, self._name, topics)) as membership:
                while not stopped() and self._releases.in_force.topics == topics:
                    self._hold(membership, stopped)
                    if self._releases.poll():
                        show_in_force(self._releases.take(), self._metrics)
                    time.sleep(_ASSIGNMENT_POLL_SECONDS)

    def _hold(self, membership: UpstreamMembership, stopped: Callable[[], bool]) -> None:
        """Normalises what the group has assigned, until it is revoked or another release is ready."""
        with membership.held.holding() as assignment:
            if assignment is None:
                self._metrics.lag(0)
                return
            membership.fence_departed()
            producer = TransactionalProducer(self._spark, self._kafka, self._name, assignment.generation)
            with closing(Sink(producer)) as sink:
                self._write(assignment, sink, lambda: stopped() or membership.held.is_revoked(assignment))

    def _write(self, assignment: Assignment, sink: Sink, ended: Callable[[], bool]) -> None:
        progress = Progress(self._metrics, self._reporter)
        with self._position(release := self._releases.in_force) as position:
            for before, partitions in position.ahead_by_others(assignment.partitions).items():
                if (older := self._releases.known(before)) is None:
                    logging.logger().warning(
                        f"release {before.name} has written records ahead of the offsets and is not kept; those that "
                        "it made otherwise may be missing, or be there twice",
                        offsets=partitions,
                    )
                    continue
                with self._position(older) as its:
                    self._worker(older, sink, its).complete(partitions, progress, ended=ended)
            if not ended():
                self._worker(release, sink, position).run(
                    assignment.partitions, progress, ended=lambda: ended() or self._releases.poll()
                )

    def _position(self, release: UpstreamRelease) -> closing[Position]:
        return closing(Position(self._kafka, self._app, release.target, release.id, release.waiting))

    def _worker(self, release: UpstreamRelease, sink: Sink, position: Position) -> PartitionWorker:
        queries = Queries(
            self._spark,
            self._kafka,
            self._settings,
            release.target,
            release.mappings.usable,
            dict(release.partitions),
            self._length,
        )
        return PartitionWorker(queries, self._settings.mode, sink, position)


def _task_slots(settings: UpstreamSettings, release: UpstreamRelease) -> int:
    """The number of concurrent tasks. Real-Time Mode needs one per raw partition, which may be more than the cores."""
    return max(settings.cores, release.slots if settings.mode == "realtime" else 1)


def show_in_force(release: UpstreamRelease, metrics: UpstreamMetrics) -> None:
    """Shows by a metric which mappings are in force; the log and that metric name the others, whose records wait.

    Raises ConfigError with every problem if there is none to run.
    """
    read = release.mappings
    if not read.usable:
        raise wrong_mappings(read.refused, "fix what is named, then start upstream; raw records of their topics wait")
    metrics.stream_release.mappings(
        {mapping.source: True for mapping in read.usable} | {each.name: False for each in read.refused}
    )
    for mapping in read.usable:
        metrics.skipped.count(mapping.source, {skip.name: 0 for skip in mapping.skip})
    for refused in read.refused:
        logging.logger().error(
            f"the mapping of {refused.name} is not in force, and the raw records of its topic wait",
            problems=refused.problems,
            hint="fix the mapping and restart upstream; no record is lost within the topic's retention",
        )


def checked_app(stream: StreamDefinition, app: str) -> StreamDefinition:
    """The stream, if `app` normalises it; raises ConfigError, because another group has other offsets."""
    if stream.app != app:
        raise ConfigError(
            f"reading the stream {stream.name}: its normaliser is {stream.app} in one release and {app} in its folder",
            hint="put the app in stream.toml back: a release keeps group, coverage and dead letters of its stream",
        )
    return stream


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
