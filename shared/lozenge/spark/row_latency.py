"""Time as Spark tells it for each row, where rows go out one by one and none comes by Python."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

COUNT = "count"
_TIMES = "times"
_SKETCH = 1024
"""Exact up to three quarters of so many different times; of a day in milliseconds, 540 have two digits."""


def millis() -> Column:
    """Milliseconds since 1970, for each row: Spark's own functions tell when the batch began, perhaps a minute ago."""
    return F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis")).cast("bigint")


def counted(milliseconds: Column) -> list[Column]:
    """Aggregates of rows: how many, and how many took how long; null is none of these.

    Times of three and more digits are rounded up to two, so each falls in the bucket of the metric in which it is.
    They are few aggregates, for every task of every batch compiles them anew while events wait.
    """
    times = F.when(milliseconds < 0, 0).otherwise(milliseconds)  # `greatest` would take null for none
    unit = F.pow(F.lit(10), F.greatest(F.floor(F.log10(times)) - 1, F.lit(0))).cast("bigint")
    rounded = F.ceil(times / unit) * unit
    return [
        F.count(F.lit(1)).alias(COUNT),
        F.call_function("approx_top_k", rounded, F.lit(_SKETCH), F.lit(_SKETCH)).alias(_TIMES),
    ]


def latencies(counts: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """(rows, seconds that each took) of what `counted` gave."""
    for row in counts[_TIMES]:
        if row["item"] is not None:
            yield row["count"], row["item"] / 1000
