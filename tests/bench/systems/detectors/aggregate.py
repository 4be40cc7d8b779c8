"""The aggregate of the benchmark: counts the events of each card, without end, and alerts on every so-many-th.

Its one window lasts a century: the peers count without windows.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert


class Count(Settings):
    every: int = 1


def detect(events: DataFrame, settings: Count, tables: Tables) -> DataFrame:
    window = F.window("event_time", "36500 days")
    counts = events.groupBy(window, "card_id").agg(F.count("*").alias("n"), F.max("event_time").alias("at"))
    due = counts.where(F.col("n") >= settings.every)
    every = F.lit(settings.every).cast("long")
    alerts = due.withColumn("count", F.explode(F.sequence(every, F.col("n"), every)))
    return alerts.select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=F.col("count"),
            at=F.col("at"),
            reason=F.format_string("event %s of this card", "count"),
            values={"count": F.col("count")},
        )
    )


detector = Detector(detect, settings=Count)
