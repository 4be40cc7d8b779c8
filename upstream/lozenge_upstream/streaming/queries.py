"""The queries of an instance: each starts at given offsets and writes until it is to end."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import takewhile

from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read
from lozenge.process import logging
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge.spark.kafka_sink import UNBATCHED, SinkProducer
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import skips
from lozenge_upstream.normalise.output_records import StreamOutput, in_order
from lozenge_upstream.normalise.raw_rows import frame_of
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming import micro_batch, realtime
from lozenge_upstream.streaming.batch_metrics import Progress, count, counted
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.query_builder import of_records, stream
from lozenge_upstream.streaming.recovery_read import recovery_read
from lozenge_upstream.streaming.transactional_producer import LARGE_RECORDS
from lozenge_upstream.streaming.transactional_sink import Sink

MOST_OFFSETS = 5_000
"""Of each partition that pass through Python at once."""


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

    def without_source(self, start: Offsets, sink: Sink, position: Position, progress: Progress) -> bool:
        """Writes the next records from `start` on as one batch, which Python reads; whether there were any."""
        begun = time.monotonic()
        found, ends = next_records(self._spark, self._kafka, start)
        if not ends:
            return False
        written = recovery_read(self._spark, self._kafka, position.written_since, self._target)
        position.written_until = written.until
        offsets = position.distance_to(ends)
        progress.started(offsets)
        rows = of_records(found, self._settings, self._target, self._sources, self._partitions, written).persist()
        try:
            counts = count(rows, self._target.events, self._skipped)
            there = rows.where(F.col("topic").isNotNull())
            ordered = in_order(there, self._partitions[self._target.events])
            sink.commit(ordered, ends, position.metadata_at(ends))
        finally:
            rows.unpersist()
        position.advance(ends)
        progress.written(offsets, counts, time.monotonic() - begun)
        return True

    @property
    def _skipped(self) -> list[str]:
        return [reason for mapping in self._sources for reason in skips(mapping)]

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
        return counted(rows, self._target.events, self._skipped, one_by_one=not bounded)


def next_records(spark: SparkSession, kafka: KafkaSettings, start: Offsets) -> tuple[dict[str, DataFrame], Offsets]:
    """At most `MOST_OFFSETS` raw records of each partition from `start` on by topic, and the offsets after them.

    Raises BrokerUnavailable.
    """
    found: dict[str, list[Message]] = {}
    ends: Offsets = {}
    for topic, of in start.items():
        for number, begin in of.items():
            if records := _of_partition(kafka, topic, int(number), begin):
                found.setdefault(topic, []).extend(records)
                ends.setdefault(topic, {})[number] = (records[-1].offset() or 0) + 1
    return {topic: frame_of(spark, records) for topic, records in found.items()}, ends


def _of_partition(kafka: KafkaSettings, topic: str, partition: int, begin: int) -> list[Message]:
    records = read(kafka, topic, {partition: begin})
    return [*takewhile(lambda message: (message.offset() or 0) < begin + MOST_OFFSETS, records)]
