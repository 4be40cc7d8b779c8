"""Rules in Real-Time Mode: Spark reads, processes and writes, without Python and without a transaction.

A task writes alerts in the order of its events, and a batch ends when all of them are acknowledged. Alerts published
before their offsets were committed are found by a recovery read and skipped by their ids: see `published_alerts`.

Spark's sink knows no fence. So a successor starts only when its predecessor has ended, and the agent ensures that. A
predecessor that the agent cannot see, on a machine that lost its network, ends at its next commit, which is fenced.
Until then its alerts have the ids of alerts that are already published.
"""

from collections.abc import Collection, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.job.drivers.realtime import RealtimeLoop
from lozenge.job.operators.operator import Operator
from lozenge.job.query.alert_columns import ALERT_ID, TOOK
from lozenge.process.logging import logger
from lozenge.spark.kafka_sink import COLUMNS, UNBATCHED, SinkProducer
from lozenge.spark.query_progress import TriggerProgress
from lozenge.spark.row_latency import COUNT, latencies, latency_counts

_PUBLISHED = "published"
"""The name of the observation that counts written alerts."""


class RealtimeRuleLoop(RealtimeLoop):
    """The job of a rule whose `mode` is "realtime"."""

    _producer: SinkProducer | None = None

    def _writer(self, operator: Operator) -> DataStreamWriter:
        self._close_producer()
        self._producer = SinkProducer(self._spark, self._identity.app, self._kafka.spark() | UNBATCHED)
        rows = self._unpublished(self._published_ids(), operator)
        return self._realtime_writer(rows, self._producer.options)

    def _warm_up_rows(self, operator: Operator) -> DataFrame:
        return self._unpublished([""], operator)  # with an id: most starts skip some, and that is another plan

    def _published_ids(self) -> Collection[str]:
        assert self._committer is not None
        if published := self._committer.published_ids():
            ends = self._ends()
            events = sum(ends[p] - offset for p, offset in self.offsets.items())
            logger().info("reprocessing events since the last commit", events=events, published=len(published))
        return published

    def _unpublished(self, published: Collection[str], operator: Operator) -> DataFrame:
        rows = self._builder.alert_rows(operator.frame())
        if published:
            # an Arrow table is a local relation. Spark makes an RDD of a list, with Python workers that stay: four
            # seconds and 200 MB
            known = self._spark.createDataFrame(pa.table({ALERT_ID: pa.array(list(published), pa.string())}))
            rows = rows.join(F.broadcast(known), ALERT_ID, "left_anti")
        return rows.observe(_PUBLISHED, *latency_counts(F.col(TOOK))).select(*COLUMNS)

    def _stop_query(self, query: StreamingQuery, *, within: float) -> None:
        super()._stop_query(query, within=within)
        self._close_producer()

    def _has_changes(self, trigger: TriggerProgress) -> bool:
        """A batch without events has published nothing."""
        return trigger.ends != self.offsets

    def _commit(self, trigger: TriggerProgress) -> None:
        """Every alert of the batch is acknowledged."""
        super()._commit(trigger)
        counts = trigger.progress.observedMetrics[_PUBLISHED].asDict()
        self._metrics.emitted(counts[COUNT])
        for count, seconds in latencies(counts):
            self._metrics.latency(seconds, count)

    def _failed_at(self) -> Mapping[int, int]:
        self._close_producer()
        return super()._failed_at()

    def _close_producer(self) -> None:
        """Drops what an ended query has not sent yet, so that no alert is written after the recovery read."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
