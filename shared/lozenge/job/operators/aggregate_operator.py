"""Aggregates: Spark counts, and `EmittedAlerts` lets each alert through once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from lozenge.contracts.record import Record
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.operators import rows
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.job.operators.rule_operator import RuleOperator, drafts_of
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.settings import KafkaSettings


class AggregateOperator(RuleOperator):
    """Emits an alert for each row whose alert id is new."""

    def __init__(self, alerts: DataFrame, emitted: EmittedAlerts) -> None:
        super().__init__(alerts)
        self._emitted = emitted

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads which alerts have been emitted."""
        return self._emitted.restore(kafka)

    def load(self, stored: Iterable[Stored]) -> int:
        """Takes which alerts have been emitted."""
        return self._emitted.load(stored)

    def adopt_state(self, previous: "AggregateOperator") -> int:
        """Takes which alerts `previous` has emitted."""
        return self._emitted.adopt_state(previous._emitted)

    def process(self, batch: pa.Table) -> BatchResult:
        """The alerts that have not been emitted."""
        keys = zip(batch["entity"].to_pylist(), batch["dedup_key"].to_pylist(), strict=True)
        new = [not self.has_emitted(self._emitted.id_of(*key)) for key in keys]
        return self.process_rows(rows.rows(batch.filter(pa.array(new, pa.bool_()))))

    def has_emitted(self, alert_id: str) -> bool:
        """Whether the alert was emitted. Cheap, because each change of a group brings its rows again."""
        return alert_id in self._emitted

    def process_rows(self, changed: Iterable[Mapping[str, Any]]) -> BatchResult:
        """As `process`, for rows from which emitted alerts have been dropped already."""
        result = drafts_of(changed)
        return result._replace(alerts=self._emitted.add(result.alerts))

    def state_changes(self) -> list[Record]:
        """The alerts emitted since the last call."""
        return self._emitted.state_changes()

    def cut_over(self, kafka: KafkaSettings, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        """Those that the replaced job has not emitted."""
        return self._emitted.cut_over(kafka, buffered)
