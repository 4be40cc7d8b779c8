"""Runs one sink, from the settings of its start to its exit code."""

from contextlib import closing
from pathlib import Path

from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.near_names import near_hint
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.sink.settings import SinkSettings
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import read_sink
from lozenge.streams.project import Streams

TOPIC_SECONDS = 2.0
"""How often a cache looks for a topic that does not exist yet."""
RESULT_SHARE = 2
"""The part of the heap that the rows of a commit may take."""


def run(folder: Path, settings: SinkSettings, kafka: KafkaSettings) -> None:
    """Runs the sink that `folder` declares until SIGTERM or SIGINT. A restart begins where its tables or its cache end.

    Raises ConfigError, BrokerUnavailable or TopicError before anything is read, and later what its kind raises.
    """
    stop = StopSignal()
    sink, streams = read_sink(folder), Streams.load()
    logging.configure(sink.app, instance=settings.instance)
    ensure_topics(kafka, [kafka.topics.dead_letter_topic(sink.app)])
    metrics = SinkMetrics(sink.app, settings.instance)
    if isinstance(sink, CacheSink):
        _cache(sink, streams, kafka, metrics, stop)
    else:
        _archive(sink, streams, settings, kafka, metrics, stop)
    logging.logger().info(f"{sink.app} stopped")


def _cache(sink: CacheSink, streams: Streams, kafka: KafkaSettings, metrics: SinkMetrics, stop: StopSignal) -> None:
    """Any number of processes share the partitions; raises as `CacheInstance.run` does."""
    from lozenge.cache.cached_topic import cached_topic
    from lozenge.cache.stores import store_of
    from lozenge.sink.cache_instance import CacheInstance

    topic = cached_topic(sink, kafka, {each.name: each for each in streams.definitions})
    with closing(store_of(sink)) as store, Reporter(metrics, kafka):
        if _exists(kafka, topic.name, sink.reads, stop):
            CacheInstance(sink, topic, store, kafka, metrics, stop).run()


def _exists(kafka: KafkaSettings, topic: str, records: str, stop: StopSignal) -> bool:
    """Waits until the topic of these `records` exists; false if it is to stop before."""
    waits = False
    while topic not in (existing := partitions(kafka)):
        if not waits:
            hint = "; ".join(filter(None, ("check what the sink is to read", near_hint(topic, existing))))
            logging.logger().warning(f"waits for {topic}: nothing has written {records} yet", hint=hint)
            waits = True
        if stop.wait(TOPIC_SECONDS):
            return False
    return True


def _archive(
    sink: ArchiveSink,
    streams: Streams,
    settings: SinkSettings,
    kafka: KafkaSettings,
    metrics: SinkMetrics,
    stop: StopSignal,
) -> None:
    """Several processes share the tables; at its end one commits what the topics of its own have by then.

    Raises Fenced if it was away for so long that its tables are another one's, and SparkGone.
    """
    from lozenge.sink.sink_loop import SinkLoop
    from lozenge.sink.spark_reader import SparkReader  # Spark is imported only once it is needed
    from lozenge.sink.table_shares import TableShares
    from lozenge.sink.topic_sink import ArchiveReading
    from lozenge.spark.session_provider import OwnJvm, SessionRequest

    sessions = OwnJvm()
    memory_mb = settings.memory_mb
    request = SessionRequest(sink.app, settings.cores, memory_mb, result_mb=memory_mb // RESULT_SHARE)
    spark = sessions.start(request)
    with (
        sessions.held(spark, "archiving", lambda: stop.requested),
        closing(Committed(kafka, sink.app)) as committed,
        Reporter(metrics, kafka, meter=sessions.meter(spark)),
    ):
        reading = ArchiveReading(kafka, sink.app, SparkReader(spark, kafka, sink.app), committed)
        shares = TableShares(kafka, sink.app)
        SinkLoop(sink, streams.definitions, settings.archive, reading, shares, metrics).run(stop)
