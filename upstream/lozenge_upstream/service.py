"""The running normaliser: raw topics in, canonical topics and dead letters out.

**Guarantee: exactly once, for readers of committed records.** The records of a batch and its end offsets in
the consumer group `upstream` are one Kafka transaction (see `sink`). A process that dies before the commit has
written nothing, and whoever gets its partitions takes back what it left open before reading their offsets. Nothing
is skipped. A batch is written in the order of the raw records' Kafka timestamps, so a backlog comes out as it came in.

Ids and bytes depend on the raw record alone. A record that is in the raw topic twice comes out twice, and so does
one that an operator replays: with an equal `event_id`.

Any number of instances share the raw partitions (see `membership`); one that has none waits. The group's offsets
are the only truth: whoever gets partitions makes a new Spark checkpoint and goes on at the group's offsets, the first
of all at the earliest record. To replay, stop every instance, move the group's offsets with any Kafka tool, and start.

One query holds all sources, so a batch has one commit.
"""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import FrameType

from lozenge.contracts import topics
from lozenge.contracts.schemas import newest
from lozenge.errors import TopicError
from lozenge.kafka import schema_topic, topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import Metrics, Reporter
from lozenge.process import logging
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.spark.session import outliving, spark_session
from lozenge_upstream.normalise.mapping import Mapping, load
from lozenge_upstream.normalise.output_records import APP
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_membership import Membership
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.partition_worker import PartitionWorker
from lozenge_upstream.streaming.query_builder import SPARK
from lozenge_upstream.streaming.transactional_sink import Sink

_LOOK_SECONDS = 0.1


def run(settings: UpstreamSettings, kafka: KafkaSettings) -> None:
    """Normalises until SIGTERM or SIGINT, then ends after the current batch.

    Raises ConfigError, TopicError or BrokerUnavailable before anything is read; Fenced if other instances have
    its partitions while it still writes; LozengeError when the query fails, after which a restart goes on where the
    last commit was.
    """
    stop = StopSignal()
    mappings = load(settings.mappings)
    partitions = _partitions(kafka, mappings, settings.rekeys)
    # Spark takes seconds to start; what else is to be done is done meanwhile.
    starting = ThreadPoolExecutor(1).submit(
        spark_session, APP, cores=_slots(settings, mappings, partitions), memory_mb=settings.memory_mb, conf=SPARK
    )
    schema_topic.announce(kafka, [newest("event")])
    log = logging.logger()
    if settings.is_demo_key:
        log.warning("card tokens use the demo key; set LOZENGE_UPSTREAM_TOKEN_KEY before a real card number comes")
    metrics = Metrics(APP, settings.instance)
    spark = starting.result()
    name = f"{APP}-{settings.instance}"
    length = RealtimeBatchDuration(spark, settings.short_batches)
    with (
        outliving(spark, "normalising", lambda: stop.asked),
        Reporter(metrics, kafka) as reporter,
        closing(Position(kafka, APP)) as position,
        closing(Membership(spark, kafka, APP, name, [mapping.topic for mapping in mappings])) as membership,
    ):
        while not stop.asked:
            with membership.holding() as slots:
                if slots is None:
                    metrics.lag(0)
                else:
                    membership.fence_departed()
                    with closing(Sink(spark, kafka, name, slots.generation)) as sink:
                        work = PartitionWorker(spark, kafka, settings, mappings, partitions, sink, position, length)
                        work.run(
                            slots.partitions,
                            Progress(metrics, reporter),
                            ended=lambda: stop.asked or membership.wanted_back(slots),
                        )
            time.sleep(_LOOK_SECONDS)
    log.info("upstream stopped")


class StopSignal:
    """Set by SIGTERM or SIGINT; a plain flag, because a signal handler must not take locks."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def _slots(settings: UpstreamSettings, mappings: list[Mapping], partitions: dict[str, int]) -> int:
    """How many tasks may run at once: in Real-Time Mode one for each raw partition, and they may be more than cores."""
    needed = sum(partitions[mapping.topic] for mapping in mappings) if settings.mode == "realtime" else 1
    return max(settings.cores, needed)


def _partitions(kafka: KafkaSettings, mappings: list[Mapping], rekeys: tuple[str, ...]) -> dict[str, int]:
    """How many partitions every topic has; the raw topics must exist, ours must keep their contracts."""
    existing = topic_admin.partitions(kafka)
    missing = [f"{mapping.topic} (source {mapping.source})" for mapping in mappings if mapping.topic not in existing]
    if missing:
        raise TopicError(
            f"looking for the raw topics at {kafka.bootstrap}: there is no {', no '.join(missing)}",
            hint="create it, or remove the mapping that names it",
        )
    ours = {topics.EVENTS, topics.dead_letters(APP), *map(topics.events_by, rekeys)}
    topic_admin.check_topics(kafka, [topic for topic in topics.platform_topics(rekeys) if topic.name in ours])
    return existing
