"""What judges a batch: one host per kind of detector, all with the same calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from lozenge.errors import EncodeError
from lozenge.job.batch_result import BatchResult
from lozenge.job.commit.alert_encoder import FailedRecord, FailureWithoutRecord, Finding, from_row
from lozenge.job.operators import rows
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.state_topic import Stored
from lozenge.kafka.writers import Record


class Operator(Protocol):
    """Runs a detector's result.

    `restore` or `inherit` comes before the first `judge`; `judge` once per batch, in order. After each of them, or
    several where nothing was committed between, `changes` go into the transaction.
    """

    def frame(self) -> DataFrame:
        """What Spark evaluates and hands over per batch."""

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads committed state back; returns the number of keys."""

    def recall(self, stored: Iterable[Stored]) -> int:
        """Takes committed state as it was read back; returns the number of keys."""

    def inherit(self, before: Any) -> int:
        """Takes the memory of a host of its own kind that ended at a batch boundary; returns the number of keys."""

    def judge(self, batch: pa.Table) -> BatchResult:
        """Decides one batch, without side effects outside itself."""

    def changes(self) -> list[Record]:
        """The state to write since it was last asked."""

    def take_over(self, kafka: KafkaSettings, held: Sequence[Finding]) -> Sequence[Finding]:
        """After the predecessor was fenced: those of the findings held back that it has not told."""


class RuleOperator:
    """Rules and models: every row of the detector's DataFrame is a finding."""

    def __init__(self, alerts: DataFrame) -> None:
        self._alerts = alerts

    def frame(self) -> DataFrame:
        """The alert columns."""
        return self._alerts

    def restore(self, kafka: KafkaSettings) -> int:
        """Nothing: a rule has no state."""
        return 0

    def recall(self, stored: Iterable[Stored]) -> int:
        """Nothing."""
        return 0

    def inherit(self, before: Any) -> int:
        """Nothing."""
        return 0

    def judge(self, batch: pa.Table) -> BatchResult:
        """One finding per row."""
        return _found(rows.rows(batch))

    def changes(self) -> list[Record]:
        """Nothing."""
        return []

    def take_over(self, kafka: KafkaSettings, held: Sequence[Finding]) -> Sequence[Finding]:
        """All of them: their places say which are its own."""
        return held


class AggregateOperator(RuleOperator):
    """Aggregates: Spark counts, `EmittedAlerts` sees to it that each crossing is told once."""

    def __init__(self, alerts: DataFrame, crossings: EmittedAlerts) -> None:
        super().__init__(alerts)
        self._crossings = crossings

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads back which crossings have been told."""
        return self._crossings.restore(kafka)

    def recall(self, stored: Iterable[Stored]) -> int:
        """Remembers which crossings have been told."""
        return self._crossings.recall(stored)

    def inherit(self, before: "AggregateOperator") -> int:
        """Takes over which crossings have been told."""
        return self._crossings.inherit(before._crossings)

    def judge(self, batch: pa.Table) -> BatchResult:
        """The findings not told before."""
        places = zip(batch["entity"].to_pylist(), batch["occasion"].to_pylist(), strict=True)
        new = [not self.remembers(self._crossings.id_of(*place)) for place in places]
        return self.process_rows(rows.rows(batch.filter(pa.array(new, pa.bool_()))))

    def remembers(self, alert_id: str) -> bool:
        """Whether it was told: quick, as each change of a group that has crossed brings its rows again."""
        return self._crossings.remembers(alert_id)

    def process_rows(self, rows: Iterable[Mapping[str, Any]]) -> BatchResult:
        """As `judge`, of rows that are no alerts told long ago."""
        judged = _found(rows)
        return judged._replace(findings=self._crossings.judge(judged.findings))

    def changes(self) -> list[Record]:
        """The crossings told since it was last asked."""
        return self._crossings.changes()

    def take_over(self, kafka: KafkaSettings, held: Sequence[Finding]) -> Sequence[Finding]:
        """The crossings that the predecessor has not told."""
        return self._crossings.take_over(kafka, held)


def _found(rows: Iterable[Mapping[str, Any]]) -> BatchResult:
    """One finding per row; a row that is no alert is its record's fault, or else its group's."""
    findings: list[Finding] = []
    poisoned: dict[tuple[int, int], FailedRecord] = {}
    unplaced: list[FailureWithoutRecord] = []
    for row in rows:
        try:
            findings.append(from_row(row))
        except EncodeError as error:
            if row["trigger"] is not None:
                place = row["trigger"]["partition"], row["trigger"]["offset"]
                poisoned[place] = FailedRecord(*place, error)
            else:
                cause = f"group/{row['entity']}"
                unplaced.append(FailureWithoutRecord("encode", cause, 0, None, msgspec.json.encode(row), error))
    return BatchResult(findings, list(poisoned.values()), unplaced)
