"""Normalises the raw partitions that are assigned to an instance, until they are revoked or the instance stops."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.topics import UPSTREAM
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge.spark.kafka_sink import UNBATCHED, SinkProducer
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge_upstream.normalise.mapping import Mapping as Source
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming import micro_batch, realtime
from lozenge_upstream.streaming.batch_metrics import Progress, counted
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.query_builder import stream
from lozenge_upstream.streaming.read_back import read_back
from lozenge_upstream.streaming.transactional_sink import LARGE_RECORDS, Sink

Partitions = Mapping[str, Collection[int]]
"""Raw partitions by topic."""
CAUGHT_UP_OFFSETS = 10_000
"""A larger lag is processed in micro-batches, which keep the order of time across raw partitions."""


class PartitionWorker:
    """Normalises `sources` through one `sink`; `partitions` is the partition count of every topic."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        settings: UpstreamSettings,
        sources: list[Source],
        partitions: dict[str, int],
        sink: Sink,
        position: Position,
        length: RealtimeBatchDuration,
    ) -> None:
        self._spark, self._kafka, self._settings = spark, kafka, settings
        self._sources, self._partitions = sources, partitions
        self._sink, self._position, self._length = sink, position, length

    def run(self, assigned: Partitions, progress: Progress, *, ended: Callable[[], bool]) -> None:
        """Normalises the partitions `assigned` from the group's offsets on, until `ended` is true.

        Raises Fenced, BrokerUnavailable, or LozengeError if the query fails.
        """
        start = self._position.read(assigned)
        if self._settings.mode == "micro-batch":
            self._run_micro_batches(start, progress, ended)
            return
        if not self._caught_up():
            self._run_micro_batches(start, progress, lambda: ended() or self._caught_up())
            start = self._position.read(assigned)
        if not ended():
            self._run_realtime(start, progress, ended)

    def _caught_up(self) -> bool:
        return self._position.lag() <= CAUGHT_UP_OFFSETS

    def _run_micro_batches(self, start: Offsets, progress: Progress, ended: Callable[[], bool]) -> None:
        micro_batch.run(
            self._rows(start, bounded=True),
            self._sink,
            self._position,
            progress,
            tasks=self._partitions[self._kafka.topics.events],
            trigger_seconds=self._settings.trigger_seconds,
            stop_seconds=self._settings.stop_seconds,
            ended=ended,
        )

    def _run_realtime(self, start: Offsets, progress: Progress, ended: Callable[[], bool]) -> None:
        rows = self._rows(start, bounded=False)
        if self._position.written_since is None:  # before records are written ahead of the offsets
            self._sink.move(start, CommitMetadata(output_ahead=True, ahead_since=datetime.now(UTC)))
        realtime.run(
            rows,
            self._sink,
            self._position,
            progress,
            producer=SinkProducer(self._spark, f"{UPSTREAM}-realtime", self._kafka.spark() | UNBATCHED | LARGE_RECORDS),
            length=self._length,
            commit_seconds=self._settings.commit_seconds,
            ended=ended,
        )

    def _rows(self, start: Offsets, *, bounded: bool) -> DataFrame:
        written = read_back(self._spark, self._kafka, self._position.written_since, self._settings.rekeys)
        self._position.written_until = written.until
        logging.logger().info("query started", offsets=start, mode="micro-batch" if bounded else "realtime")
        rows = stream(
            self._spark,
            self._kafka,
            self._settings,
            self._sources,
            start,
            self._partitions,
            written,
            bounded=bounded,
        )
        return counted(rows, self._kafka.topics.events, one_by_one=not bounded)
