"""Tables of an archive in tests, and rows for them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.archive.columns import OFFSET, PARTITION, columns_of, rows_of
from lozenge.archive.delta_table import ArchiveTable

TOPIC, VIEW, BUCKETS = "pay.canonical.auth.v1", "events_auth", 2
RECORD: dict[str, Any] = {
    "fields": [
        {"name": "card_id", "type": "string"},
        {"name": "raw", "type": {"type": "record", "name": "Raw", "fields": [{"name": "source", "type": "string"}]}},
    ]
}
COLUMNS = columns_of(RECORD)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = date(2026, 3, 1)


def rows(
    partition: int, offsets: Iterable[int], *, day: date = DAY, columns: pa.Schema = COLUMNS, **more: Any
) -> pa.Table:
    """Rows of some offsets; every second one is in another bucket."""
    found = [
        {
            "partition": partition,
            "offset": offset,
            "timestamp": NOW,
            "ingested_at": NOW,
            "day": day,
            "bucket": offset % BUCKETS,
            "card_id": f"card-{offset}",
            "raw": {"source": "test"},
            **more,
        }
        for offset in offsets
    ]
    return rows_of(pa.Table.from_pylist(found, schema=columns), columns)


def table_in(folder: Path, columns: pa.Schema = COLUMNS) -> ArchiveTable:
    """A handle on the table in `folder`, which the first call creates."""
    return ArchiveTable.open(folder, TOPIC, VIEW, columns, BUCKETS)


def positions(table: ArchiveTable) -> list[tuple[int, int]]:
    """Partition and offset of every row as a new reader sees them, sorted."""
    return sorted(each for file in positions_by_file(table) for each in file)


def positions_by_file(table: ArchiveTable) -> Sequence[list[tuple[int, int]]]:
    """The same as they are in each file."""
    found: list[list[tuple[int, int]]] = []
    for file in ArchiveTable.existing(table.folder).files():
        held = pq.ParquetFile(table.folder / file.path).read([PARTITION, OFFSET])
        found.append([(row[PARTITION], row[OFFSET]) for row in held.to_pylist()])
    return found
