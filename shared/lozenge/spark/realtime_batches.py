"""How long the batches of queries in Real-Time Mode last: the first ones of a process are short.

At a batch boundary no event is processed: Spark ends the one batch, then plans and starts the next. A JVM that has not
yet compiled this code takes 0.7 to 1.0 s the first time, and 0.3 to 0.4 s after five times. Short batches bring the
slow ones within the first quarter of a minute, instead of one a minute.

Another query with longer batches would pause for seconds, so the running query's duration is changed.
"""

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge.durations import in_milliseconds
from lozenge.process.logging import logger
from lozenge.spark.internals import queries

SHORT_BATCHES = 6
"""How many of a process are short, if its settings leave that open."""
SHORT_SECONDS = 2.0
"""Spark's own minimum is five, which `conf` lowers."""


class RealtimeBatchDuration:
    """Of all queries of a process, one after the other; for one thread. The first `short` batches are short.

    Where Spark does not allow the duration of a running query to be changed, all batches have full length.
    """

    def __init__(self, spark: SparkSession, short: int | None = None) -> None:
        self._spark, self._short = spark, SHORT_BATCHES if short is None else short
        self._full: float | None = None  # the duration that a query which began with short batches is to get
        if self._short and not queries.can_change_batch_duration(spark):
            self._only_full()

    @property
    def warming_up(self) -> bool:
        """Whether short batches are still to come."""
        return self._short > 0

    def begin(self, seconds: float) -> str:
        """The duration for a query that starts now and is to have batches of `seconds`, as Spark takes it."""
        short = self.warming_up and seconds > SHORT_SECONDS
        self._full = seconds if short else None
        return in_milliseconds(SHORT_SECONDS if short else seconds)

    def ended(self, query: StreamingQuery) -> None:
        """Counts a batch of the query that has ended; the last short one but one lengthens all after it.

        The next batch is planned already when one ends.
        """
        self._short -= 1
        if self._short <= 1 and self._full is not None:
            if not queries.change_batch_duration(self._spark, query, in_milliseconds(self._full)):
                self._only_full()
            self._full = None

    def _only_full(self) -> None:
        self._short = 0
        logger().warning("Spark keeps the duration of a running query's batches elsewhere: none is short")
