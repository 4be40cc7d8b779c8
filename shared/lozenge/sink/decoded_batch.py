"""What a reader makes of ranges of a topic: rows for the table, and the records that have none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from lozenge.archive.archived_topics import ArchivedTopic

Ranges = Mapping[int, tuple[int, int]]
"""First offset (inclusive) and last offset (exclusive) by partition."""


class UnreadableRecord(NamedTuple):
    """A record that has no row, and why."""

    partition: int
    offset: int
    problem: str


@dataclass(frozen=True)
class DecodedBatch:
    """The committed records of some ranges. `rows` have the columns of the table, in any order."""

    rows: pa.Table
    unreadable: tuple[UnreadableRecord, ...] = ()


class RecordReader(Protocol):
    """Reads committed records of a topic."""

    def read(self, topic: ArchivedTopic, ranges: Ranges, buckets: int) -> DecodedBatch:
        """The records of `ranges`, for a table with so many `buckets`; each is a row or unreadable."""
        ...
