"""Normalises the raw partitions that are assigned to an instance, until they are revoked or the instance stops."""

import time
from collections.abc import Callable, Collection, Mapping

from lozenge.process import logging
from lozenge_upstream.settings import Mode
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.queries import Queries
from lozenge_upstream.streaming.query_errors import UnreadableTimestamp
from lozenge_upstream.streaming.transactional_sink import Sink

Partitions = Mapping[str, Collection[int]]
"""Raw partitions by topic."""
_WAITING_SECONDS = 0.2
CAUGHT_UP_OFFSETS = 10_000
"""A larger lag is processed in micro-batches, which keep the order of time across raw partitions."""


class PartitionWorker:
    """Decides from where on and in which mode the `queries` run; they write through `sink`."""

    def __init__(self, queries: Queries, mode: Mode, sink: Sink, position: Position) -> None:
        self._queries, self._mode = queries, mode
        self._sink, self._position = sink, position

    def run(self, assigned: Partitions, progress: Progress, *, ended: Callable[[], bool]) -> None:
        """Normalises the partitions `assigned` from the group's offsets on, until `ended` is true.

        Raises Fenced, BrokerUnavailable, or LozengeError if the query fails.
        """
        self._past_unreadable(assigned, progress, ended, lambda: self._run(assigned, progress, ended))

    def complete(self, assigned: Partitions, progress: Progress, *, ended: Callable[[], bool]) -> None:
        """Commits what this release has written ahead of the group's offsets in Real-Time Mode, until `ended` is true.

        Another release may write otherwise what this one has written in part. Raises as `run` does.
        """
        self._past_unreadable(assigned, progress, ended, lambda: self._complete(assigned, progress, ended))

    def _past_unreadable(
        self, assigned: Partitions, progress: Progress, ended: Callable[[], bool], work: Callable[[], None]
    ) -> None:
        """Does `work` until it returns; Python reads the records that Spark's source cannot."""
        while True:
            try:
                work()
                return
            except UnreadableTimestamp as error:
                logging.logger().warning(error.message, hint="Python reads the next records: it becomes a dead letter")
                start = self._position.read(assigned)
                if ended() or not self._queries.without_source(start, self._sink, self._position, progress):
                    raise

    def _run(self, assigned: Partitions, progress: Progress, ended: Callable[[], bool]) -> None:
        start = self._position.read(assigned)
        if not start:  # nobody reads these topics
            while not ended():
                progress.waiting(self._position.lag())
                time.sleep(_WAITING_SECONDS)
            return
        if self._mode == "micro-batch":
            self._queries.micro_batches(start, self._sink, self._position, progress, ended)
            return
        if not self._caught_up():
            self._queries.micro_batches(
                start, self._sink, self._position, progress, lambda: ended() or self._caught_up()
            )
            start = self._position.read(assigned)
        if not ended():
            self._queries.realtime(start, self._sink, self._position, progress, ended)

    def _complete(self, assigned: Partitions, progress: Progress, ended: Callable[[], bool]) -> None:
        if start := self._position.read(assigned):
            self._queries.micro_batches(
                start, self._sink, self._position, progress, lambda: ended() or self._position.is_even
            )

    def _caught_up(self) -> bool:
        return self._position.lag() - self._position.waiting_lag <= CAUGHT_UP_OFFSETS
