"""Reference lists as a detector sees them: a table of entries, and the lookup of an event's value in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.process.last_good import Contents
from lozenge.protocol.list_entries import ListEntry, version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME = pa.timestamp("us", "UTC")
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("value", "reason", "author"), pa.string()),
    **dict.fromkeys(("added_at", "expires_at"), _TIME),
}
_SCHEMA = pa.schema([*_TYPES.items()])
_VALUE, _UNTIL = "_listed_value", "_listed_until"


def listed(events: "DataFrame", entries: "DataFrame", column: str, *, into: str = "listed") -> "DataFrame":
    """`events` with one more column `into`: why the value of `column` is in the list; null if it is not.

    - `entries`: the table of the list, `tables["blocked"]`. It is broadcast.
    - `column`: a column of the events, such as "country"; its values are compared as texts.
    - `into`: the name of the new column. It holds the reason of the entry.

    An entry counts for events before its expiry, by their event time: the same at any time of processing. A fold looks
    up so before it folds. Raises ValueError if `column` is missing, or `into` is there already.
    """
    from pyspark.sql import functions as F

    if column not in events.columns:
        raise ValueError(f"listed(...): the events have no column {column}")
    if into in events.columns:
        raise ValueError(f"listed(...): the events have a column {into} already: name another one by into=")
    known = entries.select(F.col("value").alias(_VALUE), F.col("expires_at").alias(_UNTIL), F.col("reason").alias(into))
    in_force = F.col(_UNTIL).isNull() | (F.col("event_time") < F.col(_UNTIL))
    matches = (F.col(column).cast("string") == F.col(_VALUE)) & in_force
    return events.join(F.broadcast(known), matches, "left").drop(_VALUE, _UNTIL)


def write_entries(entries: Iterable[ListEntry], folder: Path) -> None:
    """Writes the table of `entries` as Parquet into the new `folder`; raises OSError."""
    rows: list[dict[str, Any]] = [
        {name: getattr(entry, name) for name in _SCHEMA.names} for entry in sorted(entries, key=lambda e: e.value)
    ]
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), folder / "data.parquet")


class EmptyList:
    """A list without entries, where there is no broker: in the test kit, and where a detector describes itself."""

    def __init__(self, name: str, folder: Path) -> None:
        self.source, self._folder = f"list {name}", folder
        self.refused: tuple[str, ...] = ()
        self.in_force = Contents(version(0, ()))

    def poll(self) -> None:
        """Writes the empty table, once."""
        if not (place := self.path(self.in_force.digest)).exists():
            write_entries((), place)

    def path(self, version: str) -> Path:
        """The folder of the empty table."""
        return self._folder / version

    def close(self) -> None:
        """There is nothing to close."""
