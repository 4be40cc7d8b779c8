"""How long rows took, measured in Spark where rows leave one by one and none passes through Python."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

COUNT = "count"
_TIMES = "times"
_SKETCH = 1024
"""Exact for up to three quarters of so many different times; of a day in milliseconds, 540 have two digits."""


def now_millis() -> Column:
    """Milliseconds since 1970, for each row: Spark's own functions give the batch's begin, perhaps a minute ago."""
    return F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis")).cast("bigint")


def latency_counts(milliseconds: Column) -> list[Column]:
    """Aggregates over rows: how many there are, and how many took how long; null counts as no latency.

    Times of three and more digits are rounded up to two digits, so each stays in its bucket of the metric. These are
    few aggregates, because every task of every batch compiles them again while events wait.
    """
    times = F.when(milliseconds < 0, 0).otherwise(milliseconds)  # `greatest` would make 0 of null
    unit = F.pow(F.lit(10), F.greatest(F.floor(F.log10(times)) - 1, F.lit(0))).cast("bigint")
    rounded = F.ceil(times / unit) * unit
    return [
        F.count(F.lit(1)).alias(COUNT),
        F.call_function("approx_top_k", rounded, F.lit(_SKETCH), F.lit(_SKETCH)).alias(_TIMES),
    ]


def latencies(counts: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """(rows, seconds that each took) from the values of `latency_counts`."""
    for row in counts[_TIMES]:
        if row["item"] is not None:
            yield row["count"], row["item"] / 1000
