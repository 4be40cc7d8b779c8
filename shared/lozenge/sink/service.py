"""Runs one sink, from the settings of its start to its exit code: the release that is deployed, as it becomes."""

from collections.abc import Mapping
from contextlib import closing

from lozenge.cache.cached_topic import cached_topic
from lozenge.cache.stores import store_of
from lozenge.kafka.followed_release import FollowedRelease
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.near_names import near_hint
from lozenge.process import logging
from lozenge.process.shutdown import Stop, StopSignal
from lozenge.protocol.app_requests import APPS, AppRelease, AppRequest
from lozenge.sink.settings import SinkSettings
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import Sink, sink_of
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams

TOPIC_SECONDS = 2.0
"""How often a cache looks for a topic that does not exist yet."""
RESULT_SHARE = 2
"""The part of the heap that the rows of a commit may take."""
Definitions = Mapping[str, StreamDefinition]
Followed = FollowedRelease[AppRelease, AppRequest, Sink]


def run(app: str, settings: SinkSettings, kafka: KafkaSettings) -> None:
    """Runs what is deployed of the sink `app` until SIGTERM or SIGINT.

    Another release begins after a commit, where the tables or the cache are; so does a restart. Raises UsageError if
    the sink is not deployed, ConfigError, BrokerUnavailable or TopicError before anything is read, and later what its
    kind raises.
    """
    stop = StopSignal()
    logging.configure(app, instance=settings.instance)
    streams = {each.name: each for each in Streams.load().definitions}

    def read(release: AppRelease) -> Sink:
        sink = sink_of(release.declaration)
        if isinstance(sink, CacheSink):
            cached_topic(sink, kafka, streams)
            store_of(sink).close()
        return sink

    ensure_topics(kafka, [kafka.topics.dead_letter_topic(app)])
    metrics = SinkMetrics(app, settings.instance)
    with closing(FollowedRelease(kafka, kafka.topics.control.apps, APPS, app, read)) as followed:
        if isinstance(followed.value, CacheSink):
            _cache(followed, streams, kafka, metrics, stop)
        else:
            _archive(followed, streams, settings, kafka, metrics, stop)
    logging.logger().info(f"{app} stopped")


def _cache(
    followed: Followed, streams: Definitions, kafka: KafkaSettings, metrics: SinkMetrics, stop: StopSignal
) -> None:
    """Any number of processes share the partitions; raises as `CacheInstance.run` does."""
    from lozenge.sink.cache_instance import CacheInstance

    with Reporter(metrics, kafka):
        for turn in followed.turns(stop):
            if not isinstance(sink := turn.value, CacheSink):
                return
            metrics.release = turn.release
            topic = cached_topic(sink, kafka, streams)
            with closing(store_of(sink)) as store:
                if _exists(kafka, topic.name, sink.reads, metrics, turn):
                    CacheInstance(sink, topic, store, kafka, metrics, turn).run()


def _exists(kafka: KafkaSettings, topic: str, records: str, metrics: SinkMetrics, turn: Stop) -> bool:
    """Waits until the topic of these `records` exists; false if it is to stop before."""
    waits = False
    while topic not in (existing := partitions(kafka)):
        if not waits:
            hint = "; ".join(filter(None, ("check what the sink is to read", near_hint(topic, existing))))
            logging.logger().warning(f"waits for {topic}: nothing has written {records} yet", hint=hint)
            waits = True
        metrics.waits(True)
        if turn.wait(TOPIC_SECONDS):
            return False
    metrics.waits(False)
    return True


def _archive(
    followed: Followed,
    streams: Definitions,
    settings: SinkSettings,
    kafka: KafkaSettings,
    metrics: SinkMetrics,
    stop: StopSignal,
) -> None:
    """Several processes share the tables; at the end of a release one commits what the topics of its own have by then.

    Raises Fenced if it was away for so long that its tables are another one's, and SparkGone.
    """
    from lozenge.sink.sink_loop import SinkLoop
    from lozenge.sink.spark_reader import SparkReader  # Spark is imported only once it is needed
    from lozenge.sink.table_shares import TableShares
    from lozenge.sink.topic_sink import ArchiveReading
    from lozenge.spark.session_provider import OwnJvm, SessionRequest

    app, sessions, memory_mb = metrics.app, OwnJvm(), settings.memory_mb
    request = SessionRequest(app, settings.cores, memory_mb, result_mb=memory_mb // RESULT_SHARE)
    spark = sessions.start(request)
    with (
        sessions.held(spark, "archiving", lambda: stop.requested),
        closing(Committed(kafka, app)) as committed,
        Reporter(metrics, kafka, meter=sessions.meter(spark)),
    ):
        reading = ArchiveReading(kafka, app, SparkReader(spark, kafka, app), committed)
        for turn in followed.turns(stop):
            if not isinstance(sink := turn.value, ArchiveSink):
                return
            metrics.release = turn.release
            shares = TableShares(kafka, app)
            SinkLoop(sink, [*streams.values()], settings.archive, reading, shares, metrics).run(turn)
