"""Rules in Real-Time Mode: Spark reads, processes and writes, without Python and without a transaction.

A task writes alerts in the order of its events, and a batch ends when all of them are acknowledged. Alerts published
before their offsets were committed are found by a recovery read and skipped by their ids: see `published_alerts`.

Spark's sink knows no fence. So a successor starts only when the previous instance has ended. The agent ensures
that. One that the agent cannot see, on a machine that lost its network, ends at its next commit, which is fenced. Until
then its alerts have the ids of alerts that are already published.
"""

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge.job.drivers.driver import AlertsDrafted, QueryPlan
from lozenge.job.drivers.realtime import EndedBatch, RealtimeRows
from lozenge.job.identity import Identity
from lozenge.job.operators.operator import Operator
from lozenge.job.query.alert_columns import ALERT_ID, TOOK
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger
from lozenge.spark.kafka_sink import COLUMNS, UNBATCHED, SinkProducer
from lozenge.spark.query_progress import TriggerProgress
from lozenge.spark.row_latency import COUNT, latencies, latency_counts

_PUBLISHED = "published"
"""The name of the observation that counts written alerts."""


class RulePublisher:
    """Lets Spark publish the alerts of a rule."""

    def __init__(self, identity: Identity, kafka: KafkaSettings, spark: SparkSession, builder: QueryBuilder) -> None:
        self._identity, self._kafka, self._spark, self._builder = identity, kafka, spark, builder
        self._producer: SinkProducer | None = None

    def begin(self, plan: QueryPlan) -> RealtimeRows:
        """The rows of alerts that were not published before; raises BrokerUnavailable."""
        assert plan.committer is not None
        self.stopped()
        self._producer = SinkProducer(self._spark, self._identity.app, self._kafka.spark() | UNBATCHED)
        if published := plan.committer.published_ids():
            logger().info("reprocessing events since the last commit", published=len(published))
        return RealtimeRows(self._unpublished(published, plan.operator), self._producer.options)

    def warm_up_rows(self, operator: Operator) -> DataFrame:
        """With an id to skip: most starts skip some, and that is another plan."""
        return self._unpublished([""], operator)

    def poll(self, seconds: float) -> Iterator[AlertsDrafted]:
        """None: Spark publishes."""
        return iter(())

    def rest(self) -> Iterator[AlertsDrafted]:
        """None: every alert of the batch is acknowledged."""
        return iter(())

    def has_changes(self, ends: Mapping[int, int], committed: Mapping[int, int]) -> bool:
        """A batch without events has published nothing."""
        return ends != committed

    def ended(self, trigger: TriggerProgress) -> EndedBatch:
        """What Spark has counted."""
        counts = trigger.progress.observedMetrics[_PUBLISHED].asDict()
        return EndedBatch(emitted=counts[COUNT], latencies=list(latencies(counts)))

    def stopped(self) -> None:
        """Drops what an ended query has not sent yet, so that no alert is written after the recovery read."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def close(self) -> None:
        """Nothing is held but the producer, which `stopped` closes."""

    def _unpublished(self, published: Collection[str], operator: Operator) -> DataFrame:
        rows = self._builder.alert_rows(operator.frame())
        if published:
            # an Arrow table is a local relation. Spark makes an RDD of a list, with Python workers that stay: four
            # seconds and 200 MB
            known = self._spark.createDataFrame(pa.table({ALERT_ID: pa.array(list(published), pa.string())}))
            rows = rows.join(F.broadcast(known), ALERT_ID, "left_anti")
        return rows.observe(_PUBLISHED, *latency_counts(F.col(TOOK))).select(*COLUMNS)
