"""Reference lists as a detector sees them: a table of entries, and the lookup of an event's value in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.contracts.topics import Topics, reference_list
from lozenge.process.last_good import Contents
from lozenge.protocol import list_entries
from lozenge.protocol.list_entries import ListEntry

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


@dataclass(frozen=True)
class ListedEntries:
    """The content of the list `name`. Nothing in it is bad: changes were checked as they were made."""

    name: str

    @property
    def source(self) -> str:
        """Its name for people."""
        return f"list {self.name}"

    @property
    def creation(self) -> str:
        """What creates its topic."""
        return f"`lozenge list add {self.name} VALUE --new` creates it"

    def topic(self, topics: Topics) -> str:
        """The name of its topic."""
        return reference_list(topics, self.name).name

    def decode(self, key: bytes, value: bytes) -> ListEntry:
        """The entry in a record; raises ValueError."""
        return list_entries.decode(key, value)

    def contents(self, changed: int, records: Mapping[str, ListEntry]) -> Contents:
        """Its version, and how many entries it has."""
        return Contents(list_entries.version(changed, records.values()), len(records))

    def write(self, records: Mapping[str, ListEntry], folder: Path) -> None:
        """Writes the table of entries, in the order of their values; raises OSError."""
        rows: list[dict[str, Any]] = [
            {name: getattr(entry, name) for name in _SCHEMA.names}
            for entry in sorted(records.values(), key=lambda entry: entry.value)
        ]
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), folder / "data.parquet")
