"""Instances of upstream in this process, on the worker's Spark, and producers that crash or hang at a named point.

After a crash at a point a producer does nothing more, as if its process had been killed there: nobody aborts its
transaction.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge.spark.internals import driver_jvm
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge.streams.project import Streams
from lozenge_upstream.normalise.mapping_files import load
from lozenge_upstream.service import output_of
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_membership import transactional_id
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.partition_worker import PartitionWorker
from lozenge_upstream.streaming.queries import Queries
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer
from lozenge_upstream.streaming.transactional_sink import Sink
from tests.integration.upstream.upstream_bench import DEADLINE_SECONDS, KEY
from tests.streams import RELEASE, STREAMS

NAME = "in-process"
INSTANCE = transactional_id("upstream", NAME)
POINTS = ("before begin", "before send", "before send_offsets", "before commit", "after commit")


class Crash(Exception):
    """A process would have ended here."""


class CrashingProducer(TransactionalProducer):
    """Crashes at a point of `POINTS`, in the next transaction after `crash_at`."""

    point = ""
    _crashed = False

    def crash_at(self, point: str) -> None:
        assert point in POINTS
        self.point = point

    def begin(self) -> None:
        self._step("begin", super().begin)

    def send(self, rows: DataFrame) -> None:
        self._step("send", lambda: super(CrashingProducer, self).send(rows))

    def send_offsets(self, ends: Offsets, metadata: CommitMetadata) -> None:
        self._step("send_offsets", lambda: super(CrashingProducer, self).send_offsets(ends, metadata))

    def commit(self) -> None:
        self._step("commit", super().commit)

    def abort(self) -> None:
        self._step("abort", super().abort)

    def late_commit(self) -> None:
        """Commits after all, as a process does that was only held up."""
        super().commit()

    def _step(self, name: str, step: Callable[[], None]) -> None:
        self._reach(f"before {name}")
        step()
        self._reach(f"after {name}")

    def _reach(self, point: str) -> None:
        self._crashed = self._crashed or point == self.point
        if self._crashed:
            raise Crash(point)


class HangingProducer(TransactionalProducer):
    """Hangs in its second transaction, once its records are written, until it is aborted; `hangs` is set then."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.hangs, self._aborted = threading.Event(), threading.Event()
        self._sends = 0

    def send(self, rows: DataFrame) -> None:
        super().send(rows)
        self._sends += 1
        if self._sends == 2:
            self.hangs.set()
            assert self._aborted.wait(DEADLINE_SECONDS)

    def abort(self) -> None:
        super().abort()
        self._aborted.set()


def without_member(spark: SparkSession, kafka: KafkaSettings, group: str = "upstream") -> Any:
    """The metadata of a group that has no member, whose offsets anybody may commit."""
    consumer = driver_jvm.java(spark).org.apache.kafka.clients.consumer
    return consumer.ConsumerGroupMetadata(kafka.topics.prefixed(group))


def run_until(
    condition: Callable[[Counter[str]], object],
    spark: SparkSession,
    kafka: KafkaSettings,
    make: type[TransactionalProducer] = TransactionalProducer,
    sources: Collection[str] = ("auth_json", "auth_iso8583"),
    streams: Streams = STREAMS,
    stream: str = "auth",
    **settings: Any,
) -> Counter[str]:
    """Runs an instance on all partitions of `sources` until `condition` holds for its metrics, which are the result."""
    definition = streams.get(stream)
    given = UpstreamSettings(token_key=KEY, **{"trigger_seconds": 0.2} | settings)  # type: ignore[arg-type]
    mappings = [
        m.model_copy(update={"topic": kafka.topics.prefixed(m.topic)})
        for m in load(streams.mappings(definition), definition)
        if m.source in sources
    ]
    counts = topic_admin.partitions(kafka)
    length = RealtimeBatchDuration(spark, given.short_batches)
    target = output_of(definition, given.rekeys, given.merges, kafka.topics)
    queries = Queries(spark, kafka, given, target, mappings, counts, length)
    metrics = UpstreamMetrics(target.app, NAME)
    position = Position(kafka, target.app, target, RELEASE)
    deadline = time.monotonic() + DEADLINE_SECONDS

    def samples() -> Counter[str]:
        return Counter(metrics.snapshot()["samples"])

    def ended() -> bool:
        assert time.monotonic() < deadline, f"the instance has not come to its end: {samples()}"
        return bool(condition(samples()))

    sink = Sink(make(spark, kafka, transactional_id(target.app, NAME), without_member(spark, kafka, target.app)))
    try:
        PartitionWorker(queries, given.mode, sink, position).run(
            {mapping.topic: range(counts[mapping.topic]) for mapping in mappings},
            Progress(metrics, Reporter(metrics, kafka)),
            ended=ended,
        )
    finally:
        sink.close()
        position.close()
    return samples()
