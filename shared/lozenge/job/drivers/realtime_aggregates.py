"""Aggregates in Real-Time Mode: Spark counts each event as it comes, and Python publishes the alerts.

Every event that changes a group writes the group's rows again. They pass through a topic (see `aggregate_changelog`) to
this process, where `EmittedAlerts` drops those that were emitted before, and the others are published at once. When a
batch ends, first every alert of it is published. Then the offsets are committed, in one transaction with the ids of the
emitted alerts. Alerts published before their offsets are skipped by their ids, as those of rules.

The commit names the batch of Spark's checkpoint that it covers. Spark may have ended the next batch before its process
died; the next start reverts that batch (`Checkpoint.back_to`), and its events are counted again.
"""

import time
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.contracts.topics import CHANGELOG_BYTES
from lozenge.detector.loader import LoadedDetector
from lozenge.job.batch_result import BatchResult, FailedRecord, FailureWithoutRecord, count, joined
from lozenge.job.drivers.aggregate_changelog import AggregateChangelog, ChangedRow, changelog_rows
from lozenge.job.drivers.realtime import RealtimeLoop
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import stop_at_too_many
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.spark.kafka_sink import UNBATCHED
from lozenge.spark.query_progress import TriggerProgress

CHANGELOG_POLL_SECONDS = 0.2
"""How long it waits for rows only, before it checks the spec and the query."""


class RealtimeAggregateLoop(RealtimeLoop):
    """The job of an aggregate whose `mode` is "realtime". One thread publishes and commits."""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: JobMetrics
    ) -> None:
        super().__init__(loaded, job, kafka, spark, metrics)
        self._changelog = AggregateChangelog(kafka, self._identity.changelog)
        self._rows = 0
        """Rows of this batch."""
        self._failed: dict[object, FailedRecord | FailureWithoutRecord] = {}
        """Failures of this batch, each once however often its group changes."""

    def run(self) -> None:
        """As every job."""
        try:
            super().run()
        finally:
            self._changelog.close()

    @property
    def _discard_state(self) -> bool:
        """A standby runs no query in this mode: the state policy of its spec holds for the first query."""
        return self._warm and not self._reporter.status.first_batch_at and self._job.state == "fresh"

    def _writer(self, operator: Operator) -> DataStreamWriter:
        self._begin_batch()
        assert self._committer is not None
        self._committer.skip_published()
        rows = changelog_rows(operator.frame(), self._identity, self._changelog.begin())
        options = self._kafka.spark() | UNBATCHED | {"kafka.max.request.size": str(CHANGELOG_BYTES)}
        return self._realtime_writer(rows, options)

    def _warm_up_rows(self, operator: Operator) -> DataFrame:
        return changelog_rows(operator.frame(), self._identity, "")

    def _wait(self, query: StreamingQuery) -> bool:
        """Publishes alerts meanwhile."""
        until = time.monotonic() + CHANGELOG_POLL_SECONDS
        while (left := until - time.monotonic()) > 0:
            self._publish(self._changelog.read(left))
            stop_at_too_many([*self._failed.values()], self._rows)
        return bool(query.awaitTermination(0.001))  # type: ignore[arg-type]

    def _publish(self, rows: Sequence[ChangedRow]) -> None:
        operator = self._operator
        assert isinstance(operator, AggregateOperator)
        assert self._committer is not None
        self._consistent = False
        result = operator.process_rows(row.columns() for row in rows if not operator.has_emitted(row.alert_id))
        count(self._metrics, BatchResult(self._committer.publish(result.alerts, self._encoder)))
        self._consistent = True
        self._rows += len(rows)
        for record in result.failed_records:
            self._failed.setdefault(record.position, record)
        for failure in result.failures_without_record:
            self._failed.setdefault(failure.cause, failure)

    def _commit(self, trigger: TriggerProgress) -> None:
        """Publishes the rest of the batch's alerts first, and those that came since."""
        for rows in self._changelog.rest():
            self._publish(rows)
            self._reporter.progressed()
        super()._commit(trigger)
        self._begin_batch()

    def _failures(self, ends: Mapping[int, int]) -> BatchResult:
        failed = self._failed.values()
        records = [each for each in failed if isinstance(each, FailedRecord)]
        others = [each for each in failed if isinstance(each, FailureWithoutRecord)]
        return joined([BatchResult([], records, others), super()._failures(ends)], [])

    def _begin_batch(self) -> None:
        self._rows, self._failed = 0, {}
