"""Runs a detector in Spark's Real-Time Mode: events are processed and alerts published as they come, in milliseconds.

A batch is only the time between two commits. When it ends, all its alerts are published, and the offsets and dead
letters are committed in one transaction, as in every job. Each alert is published once:
- whatever ends the query, every unpublished alert is of an event after the committed offsets;
- the next start processes events from these offsets on, and skips every alert that was already published.

How Spark's rows become alerts, and how published ones are skipped, depends on the kind: see `realtime_rules` and
`realtime_aggregates`.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.job.batch_result import BatchResult
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges
from lozenge.kafka.topic_reader import bounds
from lozenge.spark.kafka_sink import discarding, realtime_writer
from lozenge.spark.live_lag import LiveLag, LiveProgress, polling
from lozenge.spark.query_progress import NewProgress, TriggerProgress
from lozenge.spark.realtime_batches import SHORT_SECONDS, RealtimeBatchDuration

WARM_UP_SECONDS = 60.0
"""The longest warm-up run. It is cut short without harm: it only makes the start after it fast."""


class RealtimeLoop(JobLoop, ABC):
    """What jobs in Real-Time Mode have in common; `JobLoop` has what every job has."""

    starts_after_predecessor = True
    _output_ahead = True
    _offsets_per_batch = None
    _live_lag: LiveLag
    _query: StreamingQuery

    @cached_property
    def _batch_duration(self) -> RealtimeBatchDuration:
        return RealtimeBatchDuration(self._spark, self._job.short_batches)

    def _realtime_writer(self, rows: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
        starts = {(self._identity.input, p): offset for p, offset in self._read.items()}
        self._live_lag = LiveLag(self._spark, self._identity.app, starts)
        return realtime_writer(rows, options, self._batch_duration.begin(self._config.trigger.total_seconds()))

    def _run_warm_up(self, ranges: Ranges) -> None:
        """Runs the query of the job with its output discarded, for as long as its first batches would be short."""
        begins = {p: first for p, (first, _) in ranges.items()}
        rows = self._warm_up_rows(self._builder.operator(begins, None, self._partitions))
        with discarding(rows, self._batch_duration.begin(SHORT_SECONDS)) as query:
            progress, begun = NewProgress(query), False
            deadline = time.monotonic() + WARM_UP_SECONDS
            while (
                (self._batch_duration.warming_up or not begun)
                and time.monotonic() < deadline
                and not self._stop.is_set()
            ):
                query.awaitTermination(0.1)  # type: ignore[arg-type]
                for _ in progress.take():
                    self._batch_duration.ended(query)
                    begun = True

    @abstractmethod
    def _warm_up_rows(self, operator: Operator) -> DataFrame:
        """The rows of a warm-up run, by the plan of the job's own rows."""

    def _watch(self, query: StreamingQuery) -> Exception | None:
        self._query = query
        with polling(self._live_lag, lambda: self._claims.group.ends(self.offsets), self._report_live):
            return super()._watch(query)

    def _report_live(self, live: LiveProgress) -> None:
        """Reports the lag between two commits; Spark reports progress only at the end of a batch, minutes later."""
        self._metrics.batch_progress(live.lag, live.read)
        self._reporter.update(lag=live.lag)

    def _stop_query(self, query: StreamingQuery, *, within: float) -> None:
        """At once: a batch may last for minutes, and what it has not committed is processed again."""
        query.stop()

    def _trigger_ended(self, trigger: TriggerProgress) -> None:
        self._batch_duration.ended(self._query)
        if self._has_changes(trigger):
            self._commit(trigger)

    def _has_changes(self, trigger: TriggerProgress) -> bool:
        """Whether there is anything to commit."""
        return True

    def _commit(self, trigger: TriggerProgress) -> None:
        """Commits the offsets that a batch has read."""
        ends = trigger.ends
        assert self._operator is not None
        assert self._committer is not None
        result = self._failures(ends)
        self._batch = trigger.progress.batchId
        uncounted = self._live_lag.not_yet_counted(sum(ends[p] - self._read[p] for p in ends))
        self._metrics.begun(uncounted)
        events = self._committer.commit(self._processed(self._operator, result, ends), self._encoder)
        self._read |= ends
        self._metrics.committed(events)
        self._report_commit(result, events, time.monotonic() - trigger.progress.batchDuration / 1000)
        self._builder.excluded = [r for r in self._builder.excluded if r.offset >= ends[r.partition]]
        self._reporter.first_batch_done()

    def _failures(self, ends: Mapping[int, int]) -> BatchResult:
        """What becomes a dead letter with a batch up to `ends`."""
        return BatchResult([], self._excluded(ends))

    def _failed_at(self) -> Mapping[int, int]:
        """The end of the topic: Spark knows how far a batch has read only when the batch ends well."""
        return self._ends()

    def _ends(self) -> dict[int, int]:
        found = bounds(self._kafka, self._identity.input, self._partitions)
        return {p: end for p, (_, end) in found.items() if p in self.offsets}
