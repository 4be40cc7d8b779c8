"""What Spark tells of a running query: its batches and its waiting."""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from lozenge.spark.query_progress import NewProgress

WARM_BATCHES, WARM_SECONDS = 2, 5.0
"""A query is warm after so many batches with events, or so long after it first waited for some."""


def _total(offsets: Any) -> int:
    """The sum over all partitions of a source's offsets, which are JSON, or null before it has any."""
    return sum(offset for topic in (json.loads(offsets or "null") or {}).values() for offset in topic.values())


class TriggerProgress(NamedTuple):
    """A trigger that has ended: events read, offsets still to read, and all that Spark says of it."""

    events: int
    lag: int
    progress: StreamingQueryProgress

    @property
    def ends(self) -> dict[int, int]:
        """How far it has read, by partition of its sources, which have the same topic."""
        ends = dict[int, int]()
        for source in self.progress.sources:
            for offsets in json.loads(source.endOffset).values():
                ends |= {int(partition): offset for partition, offset in offsets.items()}
        return ends


class TriggerHistory:
    """The progress of one query, each part told once; used by one thread."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._progress = NewProgress(query)
        self._batches = 0
        self._waits_since: float | None = None

    def new(self) -> Iterator[TriggerProgress]:
        """Every trigger that ended since the last call."""
        for progress in self._progress.take():
            self._batches += progress.numInputRows > 0
            lag = sum(_total(s.latestOffset) - _total(s.endOffset) for s in progress.sources)
            yield TriggerProgress(max(0, progress.numInputRows), max(0, lag), progress)

    def waiting(self) -> bool:
        """Whether it is between two batches."""
        waits: bool = self._query.status["message"].startswith("Waiting")
        if waits and self._waits_since is None:
            self._waits_since = time.monotonic()
        return waits

    @property
    def warm(self) -> bool:
        """Whether its code has run often enough to be quick."""
        if self._batches >= WARM_BATCHES:
            return True
        return self._waits_since is not None and time.monotonic() - self._waits_since > WARM_SECONDS
