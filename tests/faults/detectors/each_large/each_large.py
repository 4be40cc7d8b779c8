"""Raises an alert at every payment above a limit. It misses nothing."""

from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert, money_column


class EachLarge(Settings):
    """`limit` is the largest amount that raises no alert."""

    limit: Decimal = Decimal(500)


def detect(events: DataFrame, settings: EachLarge, tables: Tables) -> DataFrame:
    """One alert per payment above the limit."""
    large = events.where(F.col("amount") > settings.limit)
    return large.select(*alert(reason=money_column(F.col("amount"), F.col("currency"))))


detector = Detector(detect, settings=EachLarge)
