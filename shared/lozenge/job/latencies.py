"""How long alerts took, as Spark counts it where no alert comes by Python: a number and a mean for each bucket."""

from collections.abc import Iterator
from itertools import pairwise

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from lozenge.metrics import LATENCY_BUCKETS

COUNT = "count"
_RANGES = tuple(enumerate(pairwise((float("-inf"), *LATENCY_BUCKETS))))


def counted(seconds: Column) -> list[Column]:
    """Aggregates of rows: how many, and for each of the metric's buckets how many and what mean; null is in none."""
    columns = [F.count(F.lit(1)).alias(COUNT)]
    for number, (low, high) in _RANGES:
        within = F.when((seconds > low) & (seconds <= high), seconds)
        columns += [F.count(within).alias(f"count_{number}"), F.avg(within).alias(f"mean_{number}")]
    return columns


def latencies(row: Row) -> Iterator[tuple[int, float]]:
    """(rows, seconds that stand for each) of what `counted` gave."""
    for number, _ in _RANGES:
        if row[f"count_{number}"]:
            yield row[f"count_{number}"], row[f"mean_{number}"]
