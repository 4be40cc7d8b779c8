"""The queries of an instance: each starts at given offsets and writes until it is to end."""

from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge.spark.kafka_sink import UNBATCHED, SinkProducer
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import skips
from lozenge_upstream.normalise.output_records import StreamOutput
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming import micro_batch, realtime
from lozenge_upstream.streaming.batch_metrics import Progress, counted
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.query_builder import stream
from lozenge_upstream.streaming.recovery_read import recovery_read
from lozenge_upstream.streaming.transactional_producer import LARGE_RECORDS
from lozenge_upstream.streaming.transactional_sink import Sink


class Queries:
    """Of `sources`, in either mode, for `target`; `partitions` is the partition count of every topic.

    Every method raises Fenced, BrokerUnavailable, or LozengeError if the query fails.
    """

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaSettings,
        settings: UpstreamSettings,
        target: StreamOutput,
        sources: list[Mapping],
        partitions: dict[str, int],
        length: RealtimeBatchDuration,
    ) -> None:
        self._spark, self._kafka, self._settings, self._target = spark, kafka, settings, target
        self._sources, self._partitions, self._length = sources, partitions, length

    def micro_batches(
        self, start: Offsets, sink: Sink, position: Position, progress: Progress, ended: Callable[[], bool]
    ) -> None:
        """Writes in micro-batches from `start` on until `ended` is true."""
        micro_batch.run(
            self._rows(start, position, bounded=True),
            sink,
            position,
            progress,
            name=self._target.app,
            tasks=self._partitions[self._target.events],
            trigger_seconds=self._settings.trigger_seconds,
            stop_seconds=self._settings.stop_seconds,
            ended=ended,
        )

    def realtime(
        self, start: Offsets, sink: Sink, position: Position, progress: Progress, ended: Callable[[], bool]
    ) -> None:
        """Writes each record as it arrives, from `start` on until `ended` is true."""
        rows = self._rows(start, position, bounded=False)
        if position.written_since is None:  # before records are written ahead of the offsets
            sink.move(start, CommitMetadata(output_ahead=True, ahead_since=datetime.now(UTC)))
        realtime.run(
            rows,
            sink,
            position,
            progress,
            name=self._target.app,
            producer=SinkProducer(
                self._spark, f"{self._target.app}-realtime", self._kafka.spark() | UNBATCHED | LARGE_RECORDS
            ),
            length=self._length,
            commit_seconds=self._settings.commit_seconds,
            ended=ended,
        )

    def _rows(self, start: Offsets, position: Position, *, bounded: bool) -> DataFrame:
        written = recovery_read(self._spark, self._kafka, position.written_since, self._target)
        position.written_until = written.until
        logging.logger().info("query started", offsets=start, mode="micro-batch" if bounded else "realtime")
        rows = stream(
            self._spark,
            self._kafka,
            self._settings,
            self._target,
            self._sources,
            start,
            self._partitions,
            written,
            bounded=bounded,
        )
        skipped = [reason for mapping in self._sources for reason in skips(mapping)]
        return counted(rows, self._target.events, skipped, one_by_one=not bounded)
