"""Rules: no state, and one alert per row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from lozenge.contracts.record import Record
from lozenge.errors import EncodeError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord
from lozenge.job.operators import rows
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.settings import KafkaSettings


class RuleOperator:
    """Emits an alert for every row of the detector's DataFrame."""

    def __init__(self, alerts: DataFrame) -> None:
        self._alerts = alerts

    @property
    def keys(self) -> int:
        """None: a rule has no state, and that of an aggregate is Spark's."""
        return 0

    def frame(self) -> DataFrame:
        """The alert columns."""
        return self._alerts

    def restore(self, kafka: KafkaSettings) -> int:
        """Nothing: a rule has no state."""
        return 0

    def load(self, stored: Iterable[Stored]) -> int:
        """Nothing."""
        return 0

    def adopt_state(self, previous: Any) -> int:
        """Nothing."""
        return 0

    def process(self, batch: pa.Table) -> BatchResult:
        """One alert per row."""
        return drafts_of(rows.rows(batch))

    def state_changes(self) -> list[Record]:
        """Nothing."""
        return []

    def cut_over(self, kafka: KafkaSettings, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        """All of them: the positions of a rule's alerts say which job emits them."""
        return buffered


def drafts_of(rows_: Iterable[Mapping[str, Any]]) -> BatchResult:
    """One alert per row. A row that is no alert is a failure of its record, or else of its group."""
    drafts: list[DraftAlert] = []
    failed: dict[tuple[int, int], FailedRecord] = {}
    failures: list[FailureWithoutRecord] = []
    for row in rows_:
        try:
            drafts.append(rows.from_row(row))
        except EncodeError as error:
            if row["trigger"] is not None:
                position = row["trigger"]["partition"], row["trigger"]["offset"]
                failed[position] = FailedRecord(*position, error)
            else:
                cause = f"group/{row['entity']}"
                failures.append(FailureWithoutRecord("encode", cause, 0, None, msgspec.json.encode(row), error))
    return BatchResult(drafts, list(failed.values()), failures)
