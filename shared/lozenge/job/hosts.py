"""What judges a batch: one host per kind of detector, all with the same three calls."""

from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from lozenge.job.crossings import Crossings
from lozenge.job.judgement import Judgement
from lozenge.job.output import from_row
from lozenge.kafka import KafkaSettings


class Host(Protocol):
    """Runs a detector's result. `restore` comes before the first `judge`; `judge` once per batch, in order."""

    def frame(self) -> DataFrame:
        """What Spark evaluates and hands over per batch."""

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads committed state back; returns the number of keys."""

    def judge(self, batch: pa.Table) -> Judgement:
        """Decides one batch, without side effects outside itself."""


class RuleHost:
    """Rules and models: every row of the detector's DataFrame is a finding."""

    def __init__(self, alerts: DataFrame) -> None:
        self._alerts = alerts

    def frame(self) -> DataFrame:
        """The alert columns."""
        return self._alerts

    def restore(self, kafka: KafkaSettings) -> int:
        """Nothing: a rule has no state."""
        return 0

    def judge(self, batch: pa.Table) -> Judgement:
        """One finding per row."""
        return Judgement([from_row(row) for row in batch.to_pylist()])


class AggregateHost(RuleHost):
    """Aggregates: Spark counts, `Crossings` sees to it that each crossing is told once."""

    def __init__(self, alerts: DataFrame, crossings: Crossings) -> None:
        super().__init__(alerts)
        self._crossings = crossings

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads back which crossings have been told."""
        return self._crossings.restore(kafka)

    def judge(self, batch: pa.Table) -> Judgement:
        """The findings not told before."""
        new, state = self._crossings.judge(super().judge(batch).findings)
        return Judgement(new, state=state)
