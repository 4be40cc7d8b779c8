"""Times that Spark counts for the latency metric."""

from bisect import bisect_left
from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.metrics.app_metrics import LATENCY_BUCKETS
from lozenge.spark.row_latency import COUNT, latencies, latency_counts

pytestmark = pytest.mark.integration


def test_each_time_is_counted_in_its_bucket_and_next_to_its_value(spark: SparkSession) -> None:
    bounds = [round(bound * 1000) + step for bound in LATENCY_BUCKETS[:-1] for step in (-1, 0, 1)]
    times = [*bounds, *range(100), *range(100, 90_000, 7), 86_400_000]
    rows = spark.createDataFrame([(time,) for time in [*times, -3, None]], "took bigint")
    (counts,) = rows.agg(*latency_counts(F.col("took"))).collect()
    found = {seconds: count for count, seconds in latencies(counts.asDict())}
    assert counts[COUNT] == len(times) + 2
    assert buckets(found) == buckets(Counter(max(0, time) / 1000 for time in [*times, -3]))
    assert sum(seconds * count for seconds, count in found.items()) == pytest.approx(sum(times) / 1000, rel=0.05)


def buckets(counts: dict[float, int]) -> Counter[int]:
    """How many times lie in each bucket."""
    found: Counter[int] = Counter()
    for seconds, count in counts.items():
        found[bisect_left(LATENCY_BUCKETS, seconds)] += count
    return found
