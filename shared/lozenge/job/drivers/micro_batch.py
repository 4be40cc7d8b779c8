"""Runs a query in micro-batches: Spark calls Python once for each, and the loop decides what becomes of it.

A batch is processed in Spark's thread, where the batch's properties are. That thread asks the loop before it begins a
batch, and hands over the result; so one thread decides, and no batch is under way while the loop changes anything.
"""

import time
from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from lozenge.durations import in_milliseconds
from lozenge.errors import DetectorError
from lozenge.job.batch_result import BatchResult
from lozenge.job.drivers.driver import (
    Abandoned,
    Admission,
    AtBoundary,
    BatchPlanned,
    BatchProcessed,
    Capabilities,
    Handover,
    QueryEvent,
    QueryFailed,
    QueryPlan,
    TriggerEnded,
    await_end,
)
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import Ranges, stop_at_too_many
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.internals import queries
from lozenge.spark.query_progress import StateSize, TriggerHistory

PROGRESS_SECONDS = 0.2
"""How often it looks at Spark's progress while batches follow each other."""


class MicroBatchDriver:
    """The driver of a job named `app`; its queries have one checkpoint.

    `counts` says whether Spark counts: then the next query resumes from the checkpoint, and each group that changes is
    written again.
    """

    capabilities = Capabilities(standby=True, fenced=True, limited=True)

    def __init__(self, app: str, builder: QueryBuilder, checkpoint: Checkpoint, *, counts: bool) -> None:
        self._app, self._builder, self._checkpoint, self._counts = app, builder, checkpoint, counts
        self._handover = Handover()
        self._query: StreamingQuery | None = None
        self._operator: Operator | None = None
        self._abandoned = False
        self._begins: dict[int, int] = {}

    @property
    def warm(self) -> bool:
        """Whether the running query had batches with events, or has waited for some for a while."""
        return self._history.warm

    @property
    def at_boundary(self) -> bool:
        """A busy query starts its next batch at once, so it may be seen at a batch boundary only by abandoning one."""
        return self._abandoned or self._query is None or not queries.in_trigger(self._query)

    def warm_up(self, ranges: Ranges, stopped: Callable[[], bool]) -> None:
        """Evaluates the events as a batch; it is not cut short."""
        self._builder.evaluate(ranges)

    def start(self, plan: QueryPlan) -> None:
        """Starts a query that calls back for each batch."""
        self._handover, self._abandoned = Handover(), False
        self._begins, self._operator = dict(plan.begins), plan.operator
        writer = plan.operator.frame().writeStream.foreachBatch(self._on_batch(plan.operator, self._handover))
        writer = writer.outputMode("update" if self._counts else "append").trigger(
            processingTime=in_milliseconds(plan.trigger.total_seconds())
        )
        writer = writer.queryName(self._app).option("checkpointLocation", str(self._checkpoint.folder))
        self._query = writer.start()
        self._history, self._polled_at = TriggerHistory(self._query), 0.0

    def poll(self, seconds: float) -> Iterator[QueryEvent]:
        """Batches to admit and to accept, and now and then Spark's progress."""
        assert self._query is not None
        event = self._handover.take(seconds)
        if event is not None:
            yield event
            if time.monotonic() - self._polled_at < PROGRESS_SECONDS:
                return
        elif failed := self._failed(self._query):
            yield failed
            return
        self._polled_at = time.monotonic()
        yield from self._progress()

    def stop(self) -> None:
        """Stops the query; whatever a batch under way hands over is abandoned."""
        query, self._query = self._query, None
        if query is not None:
            self._handover.close()
            queries.stop(query)

    def rest(self) -> Iterator[QueryEvent]:
        """Spark's last progress."""
        yield from self._progress()

    def close(self) -> None:
        """Nothing is held but the query."""
        self.stop()

    def _progress(self) -> Iterator[QueryEvent]:
        for trigger in self._history.new():
            held = StateSize(keys) if self._operator is not None and (keys := self._operator.keys) else None
            yield TriggerEnded(trigger.events, trigger.lag, trigger.state or held)
        if self._history.waiting():
            yield AtBoundary()

    def _failed(self, query: StreamingQuery) -> QueryFailed | None:
        """Why the query has ended, if it has without a stop."""
        try:
            await_end(query, self._app, 0.001)
        except Exception as error:
            return QueryFailed(error)
        return None

    def _on_batch(self, operator: Operator, handover: Handover) -> Callable[[DataFrame, int], None]:
        def on_batch(frame: DataFrame, number: int) -> None:
            ends: dict[int, int] = {}
            try:
                ends = self._planned(number)
                match handover.admission(BatchPlanned(number, ends)):
                    case Admission.ABANDON:
                        self._abandoned = True
                        return
                    case Admission.RECOUNT:  # Spark's own state was not committed, so Spark has to count it again
                        began, result = time.monotonic(), BatchResult([])
                        frame.write.format("noop").mode("overwrite").save()
                    case Admission.PROCESS:
                        began = time.monotonic()
                        result = operator.process(frame.toArrow())
                        stop_at_too_many(result.failures, sum(ends[p] - self._begins[p] for p in ends))
                handover.acceptance(BatchProcessed(number, ends, result, began))
                self._begins |= ends
            except Abandoned:
                if self._counts:  # else the checkpoint, for which the batch would be done, is discarded
                    raise
            except Exception as error:
                handover.put(QueryFailed(error, number, ends))  # itself: through the JVM it would come back as text
                raise

        return on_batch

    def _planned(self, number: int) -> dict[int, int]:
        ends = self._checkpoint.planned(number)
        if ends is None:
            raise DetectorError(
                f"running batch {number}: Spark has not written its offsets in {self._checkpoint.folder}",
                hint="check whether that disk is full or read-only; the job restarts at its committed offsets",
            )
        return ends
