"""The triggers of a running query: what each read and how far, and whether the query waits for events."""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from lozenge.spark.checkpoint import Offsets, merged
from lozenge.spark.internals import queries

WARM_BATCHES, WARM_SECONDS = 2, 5.0
"""A query is warm after so many batches with events, or so long after it first waited for some."""


def end_offsets(progress: StreamingQueryProgress) -> Offsets:
    """How far a trigger has read, by topic and partition of all sources."""
    return merged(json.loads(source.endOffset) for source in progress.sources)


class NewProgress:
    """The progress of one query, each trigger's once; for one thread."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._newest = ""

    def take(self) -> Iterator[StreamingQueryProgress]:
        """Of every trigger that ended since the last call, of the ten latest at most."""
        newest = queries.newest_progress(self._query)
        if newest in ("", self._newest):
            return
        for progress in self._query.recentProgress:
            if progress.timestamp > self._newest:  # an idle trigger has the number of the batch that comes next
                self._newest = progress.timestamp
                yield progress


class StateSize(NamedTuple):
    """Keys or groups, and the bytes of their stores in memory; None if that is not known."""

    rows: int
    bytes: int | None = None


class TriggerProgress(NamedTuple):
    """A trigger that has ended: events read, offsets still to read, and the whole progress."""

    events: int
    lag: int
    progress: StreamingQueryProgress

    @property
    def state(self) -> StateSize | None:
        """Of Spark's own operators; None if the query has none."""
        if not (stores := self.progress.stateOperators):
            return None
        return StateSize(sum(each.numRowsTotal for each in stores), sum(each.memoryUsedBytes for each in stores))

    @property
    def ends(self) -> dict[int, int]:
        """How far it has read, by partition of its sources, which have the same topic."""
        topics = end_offsets(self.progress).values()
        return {int(partition): offset for partitions in topics for partition, offset in partitions.items()}


class TriggerHistory:
    """The triggers of one query, each once, and whether its code is warm; for one thread."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._progress = NewProgress(query)
        self._batches = 0
        self._waits_since: float | None = None

    def new(self) -> Iterator[TriggerProgress]:
        """Every trigger that ended since the last call."""
        for progress in self._progress.take():
            self._batches += progress.numInputRows > 0
            lag = sum(_total(source.latestOffset) - _total(source.endOffset) for source in progress.sources)
            yield TriggerProgress(max(0, progress.numInputRows), max(0, lag), progress)

    def waiting(self) -> bool:
        """Whether the query is at a batch boundary."""
        waits = queries.is_waiting(self._query)
        if waits and self._waits_since is None:
            self._waits_since = time.monotonic()
        return waits

    @property
    def warm(self) -> bool:
        """Whether its code has run often enough to be quick."""
        if self._batches >= WARM_BATCHES:
            return True
        return self._waits_since is not None and time.monotonic() - self._waits_since > WARM_SECONDS


def _total(offsets: Any) -> int:
    """The sum over all partitions of a source's offsets, which are JSON, or null before it has any."""
    return sum(offset for topic in (json.loads(offsets or "null") or {}).values() for offset in topic.values())
