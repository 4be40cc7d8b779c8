"""Runs a detector in Spark's Real-Time Mode: an event is judged and its alert told when it comes, in milliseconds.

A batch only is the time from one commit to the next. When it ends, all that it had to tell is told, and the group moves
on, with dead letters, in the transaction of every job. Each alert is told once:
- whatever ends the query, the group's offsets lie before everything that was not told;
- the next start judges from there on, and leaves out every alert that was told already.

How Spark's rows become alerts, and by what they are left out, differs by kind: see `realtime_rules` and
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
from lozenge.kafka.positions import REALTIME
from lozenge.kafka.topic_reader import bounds
from lozenge.spark.kafka_sink import in_real_time, into_nothing
from lozenge.spark.live_lag import LiveLag, Seen, looking
from lozenge.spark.query_progress import NewProgress
from lozenge.spark.realtime_batches import SHORT_SECONDS, RealtimeBatchDuration
from lozenge.spark.triggers import TriggerProgress

REHEARSAL_SECONDS = 60.0
"""One that takes longer is cut short: it only makes the start behind it quick."""


class RealtimeLoop(JobLoop, ABC):
    """What jobs in Real-Time Mode have in common; see `JobLoop` for all that every job has."""

    begins_behind = True
    _checkpoint_kind = REALTIME
    _max_batch = None
    _live: LiveLag
    _query: StreamingQuery

    @cached_property
    def _length(self) -> RealtimeBatchDuration:
        return RealtimeBatchDuration(self._spark, self._job.short_batches)

    def _in_real_time(self, rows: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
        starts = {(self._identity.input, p): offset for p, offset in self._ledger.read.items()}
        self._live = LiveLag(self._spark, self._identity.app, starts)
        return in_real_time(rows, options, self._length.begin(self._terms.trigger.total_seconds()))

    def _rehearse(self, ranges: Ranges) -> None:
        """By the query that it is to run but for its end, for as long as its batches would be short."""
        begins = {p: first for p, (first, _) in ranges.items()}
        rows = self._rehearsed(self._plan.operator(begins, None, self._partitions))
        with into_nothing(rows, self._length.begin(SHORT_SECONDS)) as query:
            progress, begun = NewProgress(query), False
            deadline = time.monotonic() + REHEARSAL_SECONDS
            while (self._length.young or not begun) and time.monotonic() < deadline and not self._stop.is_set():
                query.awaitTermination(0.1)  # type: ignore[arg-type]
                for _ in progress.take():
                    self._length.ended(query)
                    begun = True

    @abstractmethod
    def _rehearsed(self, host: Operator) -> DataFrame:
        """The rows of a rehearsal, by the plan of those that Spark is to write."""

    def _watch(self, query: StreamingQuery) -> Exception | None:
        self._query = query
        with looking(self._live, self._ledger.ends, self._stands):
            return super()._watch(query)

    def _stands(self, seen: Seen) -> None:
        """Its batch lasts for minutes: what Spark tells at its end would be old news."""
        self._metrics.batch_progress(seen.lag, seen.read)
        self._reporter.update(lag=seen.lag)

    def _stop_at_boundary(self, query: StreamingQuery, *, within: float) -> None:
        """At once: what it has not committed is judged again, and its batch may last for minutes."""
        query.stop()

    def _turned(self, turn: TriggerProgress) -> None:
        self._length.ended(self._query)
        if self._commits(turn):
            self._commit(turn)

    def _commits(self, turn: TriggerProgress) -> bool:
        """Whether there is anything to commit."""
        return True

    def _commit(self, turn: TriggerProgress) -> None:
        """Commits how far a batch has come."""
        ends, ledger = turn.ends, self._ledger
        assert self._host is not None
        judged = self._put_aside(ends)
        self._batch = turn.progress.batchId
        self._metrics.begun(self._live.unseen(sum(ends[p] - ledger.read[p] for p in ends)))
        events = ledger.commit(self._host, judged, self._alerts, ends, self._stamp())
        ledger.read |= ends
        self._metrics.committed(events)
        self._measure(judged, events, time.monotonic() - turn.progress.batchDuration / 1000)
        self._plan.excluded = [p for p in self._plan.excluded if p.offset >= ends[p.partition]]
        self._reporter.first_batch_done()

    def _put_aside(self, ends: Mapping[int, int]) -> BatchResult:
        """What becomes a dead letter of a batch up to `ends`."""
        return BatchResult([], self._ledger.undecided(self._plan.excluded, ends))

    def _failed_at(self) -> Mapping[int, int]:
        """The topic's end: how far a batch has read, Spark knows only when it ends well."""
        return self._ends()

    def _ends(self) -> dict[int, int]:
        found = bounds(self._kafka, self._identity.input, self._partitions)
        return {p: end for p, (_, end) in found.items() if p in self.offsets}
