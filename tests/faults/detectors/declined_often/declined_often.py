"""Raises an alert at the third declined payment of a card within ten minutes by the clock.

It misses what is later than the declared lateness; declined payments of a campaign are not.
"""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Duration, Settings, Tables, alert


class DeclinedOften(Settings):
    """`limit` declined payments of a card within one `window` raise an alert."""

    window: Duration = timedelta(minutes=10)
    limit: int = 3


def detect(events: DataFrame, settings: DeclinedOften, tables: Tables) -> DataFrame:
    """One alert per card and window, with the first declined payments."""
    declined = events.where(F.col("auth_result") == "declined")
    uses = F.sort_array(F.collect_set(F.struct("event_time", "event_id")))
    length = f"{settings.window.total_seconds():.0f} seconds"
    windows = declined.groupBy(F.window("event_time", length), "card_id").agg(uses.alias("uses"))
    reached = windows.where(F.size("uses") >= settings.limit)
    first = reached.withColumn("uses", F.slice("uses", 1, settings.limit))
    return first.select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=str(settings.limit),
            at=F.element_at("uses", -1)["event_time"],
            reason=F.lit(f"{settings.limit} declined payments within {settings.window}"),
            evidence=F.col("uses.event_id"),
        )
    )


detector = Detector(detect, settings=DeclinedOften)
