"""Aggregates in Real-Time Mode: Spark counts each event as it comes, and Python publishes the alerts.

Every event that changes a group writes the group's rows again. They pass through a topic (see `aggregate_changelog`) to
this process, where `EmittedAlerts` drops those that were emitted before, and the others are published at once. When a
batch ends, first every alert of it is published. Then the offsets are committed, in one transaction with the ids of the
emitted alerts. Alerts published before their offsets are skipped by their ids, as those of rules.

The commit names the batch of Spark's checkpoint that it covers. Spark may have ended the next batch before its process
died; the next start reverts that batch (`Checkpoint.back_to`), and its events are counted again.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from lozenge.contracts.topics import CHANGELOG_BYTES
from lozenge.job.batch_result import BatchResult, FailedRecord, FailureWithoutRecord
from lozenge.job.drivers.aggregate_changelog import AggregateChangelog, ChangedRow, changelog_rows
from lozenge.job.drivers.driver import AlertsDrafted, QueryPlan
from lozenge.job.drivers.realtime import EndedBatch, RealtimeRows
from lozenge.job.identity import Identity
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import stop_at_too_many
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.kafka_sink import UNBATCHED
from lozenge.spark.query_progress import TriggerProgress


class AggregatePublisher:
    """Reads the rows of changed groups, and drafts the alerts of those that are new."""

    def __init__(self, identity: Identity, kafka: KafkaSettings) -> None:
        self._identity, self._kafka = identity, kafka
        self._changelog = AggregateChangelog(kafka, identity.changelog)
        self._operator: AggregateOperator | None = None
        self._rows = 0
        """Rows of this batch."""
        self._failed: dict[object, FailedRecord | FailureWithoutRecord] = {}
        """Failures of this batch, each once however often its group changes."""

    def begin(self, plan: QueryPlan) -> RealtimeRows:
        """The rows of the changelog; the committer skips what was published before. Raises BrokerUnavailable."""
        assert plan.committer is not None
        assert isinstance(plan.operator, AggregateOperator)
        self._operator = plan.operator
        self._begin_batch()
        plan.committer.skip_published()
        rows = changelog_rows(plan.operator.frame(), self._identity, self._changelog.begin())
        return RealtimeRows(rows, self._kafka.spark() | UNBATCHED | {"kafka.max.request.size": str(CHANGELOG_BYTES)})

    def warm_up_rows(self, operator: Operator) -> DataFrame:
        """The same rows, which nobody reads."""
        return changelog_rows(operator.frame(), self._identity, "")

    def poll(self, seconds: float) -> Iterator[AlertsDrafted]:
        """The alerts of the rows that come meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            yield from self._drafted(self._changelog.read(left))
            stop_at_too_many([*self._failed.values()], self._rows)

    def rest(self) -> Iterator[AlertsDrafted]:
        """The alerts of the rest of the batch, and of what came since."""
        for rows in self._changelog.rest():
            yield from self._drafted(rows)

    def has_changes(self, ends: Mapping[int, int], committed: Mapping[int, int]) -> bool:
        """Always: each batch of Spark's checkpoint is committed, with events or without."""
        return True

    def ended(self, trigger: TriggerProgress) -> EndedBatch:
        """The failures of the batch."""
        failed = self._failed.values()
        records = [each for each in failed if isinstance(each, FailedRecord)]
        others = [each for each in failed if isinstance(each, FailureWithoutRecord)]
        self._begin_batch()
        return EndedBatch(BatchResult([], records, others))

    def stopped(self) -> None:
        """Nothing: rows of an ended query have another token than those of the next one."""

    def close(self) -> None:
        """Closes the connections."""
        self._changelog.close()

    def _drafted(self, rows: Sequence[ChangedRow]) -> Iterator[AlertsDrafted]:
        operator = self._operator
        assert operator is not None
        result = operator.process_rows(row.columns() for row in rows if not operator.has_emitted(row.alert_id))
        self._rows += len(rows)
        for record in result.failed_records:
            self._failed.setdefault(record.position, record)
        for failure in result.failures_without_record:
            self._failed.setdefault(failure.cause, failure)
        if result.alerts:
            yield AlertsDrafted(result.alerts)

    def _begin_batch(self) -> None:
        self._rows, self._failed = 0, {}
