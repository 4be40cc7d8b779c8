"""The interface of what evaluates a batch; each kind of detector has its own operator."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from lozenge.contracts.record import Record
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.settings import KafkaSettings


class Operator(Protocol):
    """Evaluates the batches of one query.

    `restore`, `load` or `adopt_state` comes before the first `process`. `process` is called once per batch, in order.
    `state_changes` go into the transaction that commits the batches processed since it was last called.
    """

    @property
    def keys(self) -> int:
        """The number of keys of which it holds the state itself."""

    def frame(self) -> DataFrame:
        """The DataFrame that Spark evaluates in every batch."""

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the committed state; returns the number of keys."""

    def load(self, stored: Iterable[Stored]) -> int:
        """Takes committed state that was read already; returns the number of keys."""

    def adopt_state(self, previous: Any) -> int:
        """Takes the state of an operator of the same kind that stopped at a batch boundary; the number of keys."""

    def process(self, batch: pa.Table) -> BatchResult:
        """Evaluates one batch. Changes nothing but the operator's own state."""

    def state_changes(self) -> list[Record]:
        """The state records to write since the last call."""

    def cut_over(self, kafka: KafkaSettings, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        """Those of the `buffered` alerts that the replaced job has not emitted; call it once that job is fenced."""
