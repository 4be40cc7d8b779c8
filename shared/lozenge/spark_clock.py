"""Time as Spark tells it for each row, where rows go out one by one and none comes by Python."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.metrics import LATENCY_BUCKETS

COUNT = "count"
_RANGES = tuple(enumerate(pairwise((float("-inf"), *LATENCY_BUCKETS))))


def millis() -> Column:
    """Milliseconds since 1970, for each row: Spark's own functions tell when the batch began, perhaps a minute ago."""
    return F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis")).cast("bigint")


def counted(seconds: Column) -> list[Column]:
    """Aggregates of rows: how many, and for each of the metric's buckets how many and what mean; null is in none."""
    columns = [F.count(F.lit(1)).alias(COUNT)]
    for number, (low, high) in _RANGES:
        within = F.when((seconds > low) & (seconds <= high), seconds)
        columns += [F.count(within).alias(f"count_{number}"), F.avg(within).alias(f"mean_{number}")]
    return columns


def latencies(counts: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """(rows, seconds that stand for each) of what `counted` gave."""
    for number, _ in _RANGES:
        if counts[f"count_{number}"]:
            yield counts[f"count_{number}"], counts[f"mean_{number}"]
