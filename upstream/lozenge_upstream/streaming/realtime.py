"""One query in Spark's Real-Time Mode: each raw record goes out when it comes, in milliseconds.

Spark's sink knows no transactions, so records are written before the group moves, which it does when a batch of
Spark's ends. Whoever goes on leaves out what stands in the topics already (see `written`): each record comes out once.
An instance that loses its partitions while it is held up, for as long as the others wait for it, may write records
of them again before it notices, under equal ids.
"""

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from lozenge.spark.kafka_sink import COLUMNS, SinkProducer, in_real_time
from lozenge.spark.live_lag import LiveLag, looking
from lozenge.spark.query_progress import NewProgress
from lozenge.spark.realtime_batches import RealtimeBatchDuration
from lozenge_upstream.normalise.output_records import APP
from lozenge_upstream.streaming.batch_metrics import Progress, counted
from lozenge_upstream.streaming.group_position import Position, mark, merged
from lozenge_upstream.streaming.micro_batch import failed
from lozenge_upstream.streaming.transactional_sink import Sink

_LOOK_SECONDS = 0.2


def run(
    rows: DataFrame,
    sink: Sink,
    position: Position,
    progress: Progress,
    *,
    producer: SinkProducer,
    length: RealtimeBatchDuration,
    commit_seconds: float,
    ended: Callable[[], bool],
) -> None:
    """Writes `rows` through `producer` until `ended` says so; then it ends at once, in the middle of a batch.

    Every `commit_seconds` the group moves, in a young process more often: see `length`. Raises Fenced,
    BrokerUnavailable, or LozengeError if the query fails.
    """
    with tempfile.TemporaryDirectory(prefix="lozenge-upstream-") as folder:
        live = LiveLag(rows.sparkSession, APP, position.places)
        query = (
            in_real_time(
                counted(rows, one_by_one=True).select(*COLUMNS),
                producer.options,
                length.begin(commit_seconds),
            )
            .queryName(APP)
            .option("checkpointLocation", Path(folder).as_uri())
            .start()
        )
        batches = Batches(query, length, sink, position, progress, live)
        try:
            with looking(live, position.ends, progress.stands):
                while not ended() and not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
                    batches.commit()
        except StreamingQueryException as error:
            raise failed(error) from None
        finally:
            with suppress(Exception):  # it has ended by itself, or with its JVM
                query.stop()
            producer.close()  # what it has not sent must not come behind what is read back
        batches.commit()


class Batches:
    """Moves the group on behind each batch that has ended."""

    def __init__(
        self,
        query: StreamingQuery,
        length: RealtimeBatchDuration,
        sink: Sink,
        position: Position,
        progress: Progress,
        live: LiveLag,
    ) -> None:
        self._query, self._length, self._live = query, length, live
        self._sink, self._position, self._progress = sink, position, progress
        self._new = NewProgress(query)

    def commit(self) -> None:
        """Commits every batch that has ended since the last call; the records of such a batch are acknowledged."""
        for batch in self._new.take():
            self._length.ended(self._query)
            if batch.observedMetrics:
                self._commit(batch)

    def _commit(self, batch: StreamingQueryProgress) -> None:
        ends = merged(json.loads(source.endOffset) for source in batch.sources)
        offsets = self._position.ahead(ends)
        self._progress.begins(self._live.unseen(offsets))
        # records behind these offsets were written after this batch began, if only just
        self._sink.move(ends, mark(datetime.fromisoformat(batch.timestamp)))
        self._position.reached(ends)
        self._progress.committed(batch.batchId, offsets, batch.batchDuration / 1000)
        self._progress.report(self._query, self._position.lag())
