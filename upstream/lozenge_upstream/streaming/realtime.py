"""One query in Spark's Real-Time Mode: each raw record is emitted as it arrives, within milliseconds.

Spark's sink has no transactions, so records are written before their offsets are committed, which a batch's end does.
The next query skips what the output topics already contain (see `recovery_read`), so each record is emitted once. An
instance that stalls until its partitions are revoked may emit some of their records again, under equal ids.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.kafka_sink import COLUMNS, SinkProducer, realtime_writer
from lozenge.spark.live_lag import LiveLag, polling
from lozenge.spark.query_progress import NewProgress, end_offsets
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge_upstream.streaming.batch_metrics import Progress
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.query_errors import failed
from lozenge_upstream.streaming.transactional_sink import Sink

_QUERY_POLL_SECONDS = 0.2


def run(
    rows: DataFrame,
    sink: Sink,
    position: Position,
    progress: Progress,
    *,
    name: str,
    producer: SinkProducer,
    length: RealtimeBatchDuration,
    commit_seconds: float,
    ended: Callable[[], bool],
) -> None:
    """Writes `rows` through `producer`, as the query `name`, until `ended` is true.

    Then it ends at once, in the middle of a batch.

    Offsets are committed every `commit_seconds`, during warm-up more often: see `length`. Raises Fenced,
    BrokerUnavailable, or LozengeError if the query fails.
    """
    with tempfile.TemporaryDirectory(prefix="lozenge-upstream-") as folder:
        live = LiveLag(rows.sparkSession, name, position.offsets)
        query = (
            realtime_writer(
                rows.select(*COLUMNS),
                producer.options,
                length.begin(commit_seconds),
            )
            .queryName(name)
            .option("checkpointLocation", Path(folder).as_uri())
            .start()
        )
        batches = Batches(query, NewProgress(query), length, sink, position, progress, live)
        try:
            with polling(live, position.ends, progress.read_up_to):
                while not ended() and not query.awaitTermination(_QUERY_POLL_SECONDS):  # type: ignore[arg-type]
                    batches.commit()
        except StreamingQueryException as error:
            raise failed(error, name) from None
        finally:
            with suppress(Exception):  # it has ended by itself, or with its JVM
                query.stop()
            producer.close()  # unsent records must not be written after the recovery read
        batches.commit()


class Batches:
    """Commits the offsets of each batch that has ended."""

    def __init__(
        self,
        query: StreamingQuery,
        new: NewProgress,
        length: RealtimeBatchDuration,
        sink: Sink,
        position: Position,
        progress: Progress,
        live: LiveLag,
    ) -> None:
        self._query, self._new, self._length, self._live = query, new, length, live
        self._sink, self._position, self._progress = sink, position, progress

    def commit(self) -> None:
        """Commits every batch that has ended since the last call; the records of such a batch are acknowledged."""
        for batch in self._new.take():
            self._length.ended(self._query)
            if batch.observedMetrics:
                self._commit(batch)

    def _commit(self, batch: StreamingQueryProgress) -> None:
        ends = end_offsets(batch)
        offsets = self._position.distance_to(ends)
        self._progress.started(self._live.not_yet_counted(offsets))
        # records after these offsets were written after this batch began
        self._sink.move(ends, CommitMetadata(output_ahead=True, ahead_since=datetime.fromisoformat(batch.timestamp)))
        self._position.advance(ends)
        self._progress.committed(batch.batchId, offsets, batch.batchDuration / 1000)
        self._progress.report(self._query, self._position.lag())
