"""The metrics of the loader of a table of the platform."""

import time

from lozenge.metrics.app_metrics import AppMetrics
from lozenge.platform_tables.state import TableState


class TableMetrics(AppMetrics):
    """Records are the rows that were read of the source; emitted are the records of the table's topic."""

    def __init__(self, app: str, instance: str = "") -> None:
        super().__init__(app, instance)
        self._state = self._gauge("lozenge_table_state", "1 for what the last look at the source has found", "state")
        self._rows = self._gauge("lozenge_table_rows", "Rows of the last good version of a table of the platform")
        self._good = self._gauge(
            "lozenge_table_good_timestamp_seconds", "When the source of the table was last found good; 0 for never"
        )

    def looked(self, state: TableState, rows: int) -> None:
        """Sets what a look has found, and how many rows the last good version has."""
        for each in TableState:
            self._state.labels(each).set(each is state)
        self._rows.set(rows)
        if state is TableState.GOOD:
            self._good.set(time.time())
