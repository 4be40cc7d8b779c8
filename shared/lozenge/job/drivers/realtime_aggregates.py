"""Aggregates in Real-Time Mode: Spark counts each event when it comes, and Python tells the crossings.

Every event that changes a group makes that group's rows again. So they go by a topic (see `candidates`) to this
process, where `EmittedAlerts` knows which were told, and those that were not are told at once. When a batch ends, first
everything that it made is told, then the group moves on, in one transaction with what remembers the crossings. What was
told beyond the group's offsets is found in the alert topic and left out by its id (see `told`), as of rules.

The group names the batch of Spark's checkpoint up to which it has moved. Spark may have ended the next one before its
process died; a start takes that back (`Checkpoint.back_to`), and the events are counted and their rows made again.
"""

import time
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from lozenge.contracts import topics
from lozenge.detector.loader import LoadedDetector
from lozenge.job.batch_result import BatchResult, FailedRecord, FailureWithoutRecord, count, joined
from lozenge.job.drivers.aggregate_changelog import AggregateChangelog, Candidate, candidate_rows
from lozenge.job.drivers.realtime import RealtimeLoop
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import refuse_too_many
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import Metrics
from lozenge.spark.kafka_sink import AT_ONCE
from lozenge.spark.triggers import TriggerProgress

LOOK_SECONDS = 0.2
"""For so long it only waits for rows, before it looks at orders and at the query."""


class RealtimeAggregateLoop(RealtimeLoop):
    """The job of an aggregate whose `mode` is "realtime". One thread tells and commits."""

    def __init__(
        self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings, spark: SparkSession, metrics: Metrics
    ) -> None:
        super().__init__(loaded, job, kafka, spark, metrics)
        self._candidates = AggregateChangelog(kafka, self._identity.candidates)
        self._rows = 0  # of this batch, and what failed of them: each once, however often its group changes
        self._failed: dict[object, FailedRecord | FailureWithoutRecord] = {}

    def run(self) -> None:
        """As every job."""
        try:
            super().run()
        finally:
            self._candidates.close()

    @property
    def _afresh(self) -> bool:
        """It stands by without a query: what its order says of memory holds for the first one that it starts."""
        return self._warm and not self._reporter.status.first_batch_at and self._job.state == "fresh"

    def _writer(self, host: Operator) -> DataStreamWriter:
        self._begin_batch()
        self._ledger.skip_published()
        rows = candidate_rows(host.frame(), self._identity, self._candidates.begin())
        options = self._kafka.spark() | AT_ONCE | {"kafka.max.request.size": str(topics.CANDIDATE_BYTES)}
        return self._in_real_time(rows, options)

    def _rehearsed(self, host: Operator) -> DataFrame:
        return candidate_rows(host.frame(), self._identity, "")

    def _wait(self, query: StreamingQuery) -> bool:
        """Meanwhile it tells."""
        until = time.monotonic() + LOOK_SECONDS
        while (left := until - time.monotonic()) > 0:
            self._tell(self._candidates.read(left))
            refuse_too_many([*self._failed.values()], self._rows)
        return bool(query.awaitTermination(0.001))  # type: ignore[arg-type]

    def _tell(self, candidates: Sequence[Candidate]) -> None:
        host = self._host
        assert isinstance(host, AggregateOperator)
        self._settled = False
        judged = host.process_rows(each.row() for each in candidates if not host.has_emitted(each.alert_id))
        count(self._metrics, BatchResult(self._ledger.tell(judged.alerts, self._alerts)))
        self._settled = True
        self._rows += len(candidates)
        for record in judged.failed_records:
            self._failed.setdefault(record.position, record)
        for failure in judged.failures_without_record:
            self._failed.setdefault(failure.cause, failure)

    def _commit(self, turn: TriggerProgress) -> None:
        """Tells the rest of what its batch has made, and of what came since."""
        for candidates in self._candidates.rest():
            self._tell(candidates)
            self._reporter.progressed()
        super()._commit(turn)
        self._begin_batch()

    def _put_aside(self, ends: Mapping[int, int]) -> BatchResult:
        failed = self._failed.values()
        records = [each for each in failed if isinstance(each, FailedRecord)]
        failures = [each for each in failed if isinstance(each, FailureWithoutRecord)]
        return joined([BatchResult([], records, failures), super()._put_aside(ends)], [])

    def _begin_batch(self) -> None:
        self._rows, self._failed = 0, {}
