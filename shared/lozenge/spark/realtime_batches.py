"""How long the batches of queries in Real-Time Mode last: the first ones of a process are short.

Between two batches nothing is judged, for as long as Spark ends the one and plans and launches the next. That is code
which a young JVM has not compiled: it takes 0.7 to 1.0 s the first time and 0.3 to 0.4 after five times, whatever
lies between. So these come in the first quarter of a minute, not one a minute.

Spark sets the length when a query starts, in the leaves of its plan, and plans each batch from there. So it is changed
there, while the query runs; another query would stand still for seconds.
"""

from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lozenge.durations import in_milliseconds

SHORT_SECONDS = 2.0
"""Spark takes five at least unless it is told otherwise, as `spark_session` tells it."""


class RealtimeBatchDuration:
    """Of all queries of a process, one after the other; used by one thread. The first `short` batches are short."""

    def __init__(self, spark: SparkSession, short: int) -> None:
        self._spark, self._short = spark, short
        self._later: float | None = None  # what the batches of a query that began with short ones are to become

    @property
    def young(self) -> bool:
        """Whether there are short ones to come."""
        return self._short > 0

    def begin(self, seconds: float) -> str:
        """How long the batches of a query that starts now last, as Spark takes it; `seconds` is what is wanted."""
        short = self.young and seconds > SHORT_SECONDS
        self._later = seconds if short else None
        return in_milliseconds(SHORT_SECONDS if short else seconds)

    def ended(self, query: StreamingQuery) -> None:
        """A batch of the query has ended. The next one is planned already; the last but one lengthens all behind it."""
        self._short -= 1
        if self._short <= 1 and self._later is not None:
            self._lengthen(query, self._later)
            self._later = None

    def _lengthen(self, query: StreamingQuery, seconds: float) -> None:
        jvm = cast(Any, self._spark._jvm)
        trigger = jvm.org.apache.spark.sql.execution.streaming.RealTimeTrigger
        length = trigger.unapply(trigger.apply(in_milliseconds(seconds)))  # of Scala's long, which Python has none of
        leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()
        for leaf in (leaves.apply(number) for number in range(leaves.size())):
            if leaf.isStreaming():
                relation = leaf.relation()
                field = relation.getClass().getDeclaredField("realTimeModeDuration")
                field.setAccessible(True)
                field.set(relation, length)
