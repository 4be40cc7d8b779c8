"""Counts a batch's records while they are written, and reports them when Spark reports the batch's progress."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from lozenge.metrics.app_metrics import UpstreamMetrics
from lozenge.metrics.reporter import Reporter
from lozenge.process import logging
from lozenge.spark import row_latency
from lozenge.spark.live_lag import LiveProgress
from lozenge.streams.reasons import CLOCK
from lozenge_upstream.normalise.normaliser import DECODE_KINDS, SKIPPED

_NAME, _TOOK = "outputs", "took"
_REASONS_REPORTED = 20


def counted(rows: DataFrame, events: str, skips: Sequence[str] = (), *, one_by_one: bool = False) -> DataFrame:
    """`rows` to write, observed by Spark: the counts of a batch are taken while it is written.

    An event counts once: in the topic `events`, not in its copies. Records that are skipped count under their reason,
    one of `skips`, and are not among the rows that are returned. `one_by_one` also counts each row's latency, for
    Real-Time Mode.
    """
    times: list[Column] = []
    if one_by_one:
        rows = rows.withColumn(_TOOK, row_latency.now_millis() - (_arrived() / 1000).cast("bigint"))
        times = row_latency.latency_counts(F.col(_TOOK))
    seen = rows.observe(_NAME, *times, *_counts(events, skips))
    return seen.where(F.col("topic").isNotNull()) if skips else seen


def count(rows: DataFrame, events: str, skips: Sequence[str]) -> dict[str, Any]:
    """The counts of `rows` that are no stream, as `counted` observes them."""
    first, *others = _counts(events, skips)
    [found] = rows.agg(first, *others).collect()
    return dict(found.asDict())


def _counts(events: str, skips: Sequence[str]) -> list[Column]:
    reason, first = F.col("reason"), F.col("topic") == events
    return [
        *(F.count_if(reason.eqNullSafe(skip)).alias(skip) for skip in skips),
        F.count_if(reason.isNull()).alias("written"),
        F.count_if(reason.isNull() & first).alias("events"),
        F.count_if(F.col("topic").isNotNull() & reason.isNotNull()).alias("dead"),
        F.count_if(reason.isin(*DECODE_KINDS)).alias("decode"),
        F.min(_arrived()).alias("oldest"),
        # One sketch for all reasons, exact below some 750 reasons; a counter per kind costs ten times as much.
        F.expr(f"approx_top_k(reason, {_REASONS_REPORTED + 1}, 1024)").alias("reasons"),
    ]


def _arrived() -> Column:
    """When a raw record came, by a clock that shows it."""
    return F.when(F.col("reason").eqNullSafe(CLOCK), None).otherwise(F.col("arrived"))


class Progress:
    """Reports finished batches: metrics, and one log line for a batch with dead letters."""

    def __init__(self, metrics: UpstreamMetrics, reporter: Reporter) -> None:
        self._metrics, self._reporter = metrics, reporter
        self._committed: deque[tuple[int, float, float]] = deque()

    def started(self, offsets: int) -> None:
        """Publishes, first of all, that a batch of so many raw offsets has started."""
        self._metrics.begun(offsets)
        self._reporter.publish()

    def waiting(self, lag: int) -> None:
        """Records the lag while nothing is read."""
        self._metrics.lag(lag)

    def read_up_to(self, seen: LiveProgress) -> None:
        """Records the lag while a batch runs; from any thread."""
        self._metrics.batch_progress(seen.lag, seen.read)

    def committed(self, batch: int, offsets: int, seconds: float) -> None:
        """Publishes that `batch` was committed after `seconds`; called in batch order."""
        self._metrics.committed(offsets)
        self._reporter.publish()
        self._committed.append((batch, seconds, time.time()))

    def written(self, offsets: int, counts: dict[str, Any], seconds: float) -> None:
        """Publishes that a batch without a query was committed, in which `count` found `counts`."""
        self._metrics.committed(offsets)
        self._count(-1, counts, seconds, time.time())
        self._reporter.publish()

    def report(self, query: StreamingQuery, lag: int) -> None:
        """Reports `lag` and every batch that has ended since the last call; called every few seconds."""
        self._metrics.lag(lag)
        # an idle trigger reports the next batch's number, but no observed metrics
        observed = {p.batchId: p.observedMetrics for p in query.recentProgress if p.observedMetrics}
        for batch, seconds, at in self._ended(max(observed, default=-1)):
            counts = observed[batch][_NAME].asDict() if observed.get(batch) else {}
            if counts.get("written") or counts.get("dead") or any(_skipped(counts).values()):
                self._count(batch, counts, seconds, at)

    def _ended(self, newest: int) -> Iterator[tuple[int, float, float]]:
        while self._committed and self._committed[0][0] <= newest:
            yield self._committed.popleft()

    def _count(self, batch: int, counts: dict[str, Any], seconds: float, at: float) -> None:
        skipped = _skipped(counts)
        self._metrics.records(counts["events"] + counts["dead"] + sum(skipped.values()))
        for what, count in skipped.items():
            source, name = what.split("/")
            self._metrics.skipped.count(source, {name: count})
        self._metrics.emitted(counts["written"])
        self._metrics.batch(seconds)
        one_by_one = row_latency.COUNT in counts
        whole = [(1, at - counts["oldest"] / 1e6)] if counts["oldest"] is not None else []
        for count, took in row_latency.latencies(counts) if one_by_one else whole:
            self._metrics.latency(took, count)
        self._metrics.dead_letters(counts["decode"], "decode")
        self._metrics.dead_letters(counts["dead"] - counts["decode"], "normalise")
        if counts["dead"]:
            reasons = {row["item"]: row["count"] for row in counts["reasons"] if _is_fault(row["item"])}
            logging.logger().warning("dead letters", batch=batch, count=counts["dead"], reasons=reasons)


def _skipped(counts: dict[str, Any]) -> dict[str, int]:
    """How many records were skipped, by source and name of the declaration."""
    return {name.removeprefix(SKIPPED): count for name, count in counts.items() if name.startswith(SKIPPED)}


def _is_fault(reason: str | None) -> bool:
    return reason is not None and not reason.startswith(SKIPPED)
