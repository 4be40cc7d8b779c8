"""What Spark tells of the triggers of a running query, as they end."""

from collections.abc import Iterator

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress


class NewProgress:
    """The progress of one query, each part told once; used by one thread."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._seen = ""

    def take(self) -> Iterator[StreamingQueryProgress]:
        """Of every trigger that ended since the last call, of the ten latest at most."""
        newest = self._query._jsq.lastProgress()  # whole ones take milliseconds, and it is asked several times a second
        if newest is None or newest.timestamp() == self._seen:
            return
        for progress in self._query.recentProgress:
            if progress.timestamp > self._seen:  # an idle trigger reports under the number of the batch to come
                self._seen = progress.timestamp
                yield progress
