"""One micro-batch query: it starts at the committed offsets and ends at a batch boundary."""

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lozenge.durations import in_milliseconds
from lozenge.process import logging
from lozenge.spark.checkpoint import planned_ends
from lozenge.spark.internals import queries
from lozenge_upstream.normalise.output_records import in_order
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.query_errors import failed
from lozenge_upstream.streaming.transactional_sink import Sink

_QUERY_POLL_SECONDS = 0.2
_REPORT_SECONDS = 1.0
_PROGRESS_SECONDS = 3.0
"""How long Spark may take to report the progress of a batch that has just been committed."""


class Writer:
    """Writes one batch, in `order`, and commits its offsets; Spark calls it in batch order from its own thread."""

    def __init__(
        self,
        sink: Sink,
        position: Position,
        progress: Progress,
        checkpoint: Path,
        order: Callable[[DataFrame], DataFrame],
    ) -> None:
        self.failure: Exception | None = None
        self._sink, self._position, self._progress, self._checkpoint = sink, position, progress, checkpoint
        self._order = order
        self._busy = threading.Lock()
        self._closed = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Spark's `foreachBatch`. After `close` it writes and commits nothing."""
        with self._busy:
            if self._closed:
                return
            started, ends = time.monotonic(), planned_ends(self._checkpoint, number)
            assert ends is not None, "Spark plans a batch before it runs it"
            offsets = self._position.distance_to(ends)
            self._progress.started(offsets)
            try:
                self._sink.commit(self._order(batch), ends, self._position.metadata_at(ends))
            except Exception as error:
                self.failure = error
                raise
            self._position.advance(ends)
            self._progress.committed(number, offsets, time.monotonic() - started)

    def close(self, timeout: float) -> bool:
        """Refuses every later batch and waits for the current one; False if it took too long and was aborted."""
        self._closed = True
        ended = self._busy.acquire(timeout=timeout)
        if ended:
            self._busy.release()
        else:
            self._sink.abort()
        return ended


def run(
    rows: DataFrame,
    sink: Sink,
    position: Position,
    progress: Progress,
    *,
    name: str,
    tasks: int,
    trigger_seconds: float,
    stop_seconds: float,
    ended: Callable[[], bool],
) -> None:
    """Writes `rows` batch by batch, each with `tasks` tasks, as the query `name`, until `ended` is true.

    Then the running batch completes.

    A batch that takes longer than `stop_seconds` is aborted; the next owner of the partitions processes it again.
    Raises LozengeError if the query fails.
    """
    with tempfile.TemporaryDirectory(prefix="lozenge-upstream-") as folder:
        writer = Writer(sink, position, progress, Path(folder), lambda batch: in_order(batch, tasks))
        query = (
            rows.writeStream.queryName(name)
            .option("checkpointLocation", Path(folder).as_uri())
            .trigger(processingTime=in_milliseconds(trigger_seconds))
            .foreachBatch(writer)
            .start()
        )
        try:
            _watch(query, lambda: progress.report(query, position.lag()), ended)
            if writer.close(stop_seconds):
                if writer.failure is not None:
                    raise failed(writer.failure, name)
            else:
                logging.logger().warning("batch aborted: it exceeded the stop timeout; its records are processed again")
            deadline = time.monotonic() + _PROGRESS_SECONDS
            while queries.in_trigger(query) and time.monotonic() < deadline:
                time.sleep(0.02)
            progress.report(query, position.lag())
        except StreamingQueryException as error:
            raise failed(writer.failure or error, name) from None
        finally:
            with suppress(Exception):  # it has ended by itself, or with its JVM
                query.stop()


def _watch(query: StreamingQuery, report: Callable[[], None], ended: Callable[[], bool]) -> None:
    reported = time.monotonic()
    while not ended() and not query.awaitTermination(_QUERY_POLL_SECONDS):  # type: ignore[arg-type]
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            report()
