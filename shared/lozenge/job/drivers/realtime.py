"""Runs a query in Spark's Real-Time Mode: events are processed and alerts published as they come, in milliseconds.

A batch is only the time between two commits. When it ends, all its alerts are published, and the offsets and dead
letters are committed in one transaction, as in every job. Each alert is published once:
- whatever ends the query, every unpublished alert is of an event after the committed offsets;
- the next start processes events from these offsets on, and skips every alert that was already published.

How Spark's rows become alerts, and how published ones are skipped, is the publisher's: see `realtime_rules` and
`realtime_aggregates`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge.job.batch_result import BatchResult
from lozenge.job.commit.live_committer import LiveCommitter
from lozenge.job.drivers.driver import (
    AlertsDrafted,
    AtBoundary,
    BatchProcessed,
    BatchProgressed,
    Capabilities,
    QueryEvent,
    QueryFailed,
    QueryPlan,
    TriggerEnded,
    await_end,
)
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.internals import queries
from lozenge.spark.kafka_sink import discarding, realtime_writer
from lozenge.spark.live_lag import LiveLag, LiveProgress, polling
from lozenge.spark.query_progress import NewProgress, TriggerHistory, TriggerProgress
from lozenge.spark.realtime_batches import SHORT_SECONDS, RealtimeBatchDuration

WARM_UP_SECONDS = 60.0
"""The longest warm-up run. It is cut short without harm: it only makes the start after it fast."""


@dataclass(frozen=True, slots=True)
class RealtimeRows:
    """What a query writes to Kafka, with the options of the sink."""

    rows: DataFrame
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """What a batch that has ended leaves to commit: failures, and the alerts that Spark has published itself."""

    failures: BatchResult = field(default_factory=lambda: BatchResult([]))
    emitted: int = 0
    latencies: list[tuple[int, float]] = field(default_factory=list)


class RealtimePublisher(Protocol):
    """Publishes the alerts of a query while its batch lasts."""

    def begin(self, plan: QueryPlan) -> RealtimeRows:
        """Begins with a query that starts now; skips what was published before."""
        ...

    def warm_up_rows(self, operator: Operator) -> DataFrame:
        """The rows of a warm-up run, by the plan of the query's own rows."""
        ...

    def poll(self, seconds: float) -> Iterator[AlertsDrafted]:
        """Alerts to publish; takes `seconds` at most. Raises Flood if too many rows fail."""
        ...

    def rest(self) -> Iterator[AlertsDrafted]:
        """The alerts that are left of a batch that has ended."""
        ...

    def has_changes(self, ends: Mapping[int, int], committed: Mapping[int, int]) -> bool:
        """Whether a batch up to `ends` leaves anything to commit."""
        ...

    def ended(self, trigger: TriggerProgress) -> EndedBatch:
        """Ends the batch, and begins the next one."""
        ...

    def stopped(self) -> None:
        """The query has ended: publishes nothing more of it."""

    def close(self) -> None:
        """Ends whatever it holds."""


class RealtimeDriver:
    """The driver of one job in Real-Time Mode. The first `short_batches` of its process are short."""

    capabilities = Capabilities(standby=False, fenced=False, limited=False)
    warm = True
    at_boundary = True
    """A batch may last for minutes, and what it has not committed is processed again."""

    def __init__(
        self,
        identity: Identity,
        kafka: KafkaSettings,
        spark: SparkSession,
        group: ConsumerGroup,
        builder: QueryBuilder,
        checkpoint: Checkpoint,
        publisher: RealtimePublisher,
        short_batches: int | None,
    ) -> None:
        self._identity, self._kafka, self._spark, self._group = identity, kafka, spark, group
        self._builder, self._checkpoint, self._publisher = builder, checkpoint, publisher
        self._partitions = kafka.topics.partitions
        self._lag_polls: SimpleQueue[BatchProgressed] = SimpleQueue()
        self.batch_duration = RealtimeBatchDuration(spark, short_batches)
        self._running: _RunningQuery | None = None

    def warm_up(self, ranges: Ranges, stopped: Callable[[], bool]) -> None:
        """Runs the query of the job with its output discarded, for as long as its first batches would be short."""
        begins = {p: first for p, (first, _) in ranges.items()}
        rows = self._publisher.warm_up_rows(self._builder.operator(begins, None, self._partitions))
        with discarding(rows, self.batch_duration.begin(SHORT_SECONDS)) as query:
            progress, begun = NewProgress(query), False
            deadline = time.monotonic() + WARM_UP_SECONDS
            while (self.batch_duration.warming_up or not begun) and time.monotonic() < deadline and not stopped():
                query.awaitTermination(0.1)  # type: ignore[arg-type]
                for _ in progress.take():
                    self.batch_duration.ended(query)
                    begun = True

    def start(self, plan: QueryPlan) -> None:
        """Starts a query that publishes by itself, and polls its lag."""
        assert plan.committer is not None
        written = self._publisher.begin(plan)
        lag = LiveLag(self._spark, self._identity.app, {(self._identity.input, p): at for p, at in plan.begins.items()})
        duration = self.batch_duration.begin(plan.trigger.total_seconds())
        writer = realtime_writer(written.rows, written.options, duration).queryName(self._identity.app)
        query = writer.option("checkpointLocation", str(self._checkpoint.folder)).start()
        self._lag_polls = SimpleQueue()
        self._running = running = _RunningQuery(plan.committer, plan.begins, query, lag)
        running.polls.enter_context(polling(lag, lambda: self._group.ends(running.committed), self._report_lag))

    def poll(self, seconds: float) -> Iterator[QueryEvent]:
        """Alerts to publish, and what is to commit of batches that have ended."""
        running = self._running
        assert running is not None
        until = time.monotonic() + seconds
        try:
            yield from self._publisher.poll(seconds)
            while not self._lag_polls.empty():
                yield self._lag_polls.get()
            await_end(running.query, self._identity.app, max(until - time.monotonic(), 0.001))
            yield from self._ended(running)
        except Exception as error:
            self._publisher.stopped()
            # Spark knows how far a batch has read only when the batch ends well: the failing record is before the end
            ends = bounds(self._kafka, self._identity.input, self._partitions)
            yield QueryFailed(error, ends={p: end for p, (_, end) in ends.items() if p in running.committed})

    def stop(self) -> None:
        """Stops the query at once."""
        running = self._running
        if running is None or running.stopped:
            return
        running.stopped = True
        running.polls.close()
        try:
            queries.stop(running.query)
        finally:
            self._publisher.stopped()

    def rest(self) -> Iterator[QueryEvent]:
        """What is to commit of batches that had ended."""
        if self._running is not None:
            yield from self._ended(self._running)

    def close(self) -> None:
        """Stops the query, and closes the publisher."""
        try:
            self.stop()
        finally:
            self._publisher.close()

    def _ended(self, running: "_RunningQuery") -> Iterator[QueryEvent]:
        for trigger in running.history.new():
            self.batch_duration.ended(running.query)
            ends = trigger.ends
            if self._publisher.has_changes(ends, running.committed):
                yield from self._publisher.rest()
                yield self._processed(running, trigger, ends)
            yield TriggerEnded(trigger.events, trigger.lag, trigger.state)
        if running.history.waiting():
            yield AtBoundary()

    def _processed(self, running: "_RunningQuery", trigger: TriggerProgress, ends: dict[int, int]) -> BatchProcessed:
        batch, progress = self._publisher.ended(trigger), trigger.progress
        read = sum(ends[p] - running.read[p] for p in ends)
        running.read.update(ends)
        return BatchProcessed(
            number=progress.batchId,
            ends=ends,
            result=batch.failures,
            began=time.monotonic() - progress.batchDuration / 1000,
            uncounted=running.lag.not_yet_counted(read),
            emitted=batch.emitted,
            latencies=batch.latencies,
        )

    def _report_lag(self, progress: LiveProgress) -> None:
        """Spark reports progress only at the end of a batch, minutes later."""
        self._lag_polls.put(BatchProgressed(progress.lag, progress.read))


class _RunningQuery:
    def __init__(
        self, committer: LiveCommitter, begins: Mapping[int, int], query: StreamingQuery, lag: LiveLag
    ) -> None:
        self._committer = committer
        self.query, self.history, self.lag = query, TriggerHistory(query), lag
        self.read = dict(begins)
        self.polls = ExitStack()
        self.stopped = False

    @property
    def committed(self) -> Mapping[int, int]:
        return self._committer.offsets
