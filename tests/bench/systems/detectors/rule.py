"""The rule of the benchmark: an event above a limit. It misses everything else."""

from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert, money_column


class Large(Settings):
    limit: Decimal = Decimal("500.00")


def detect(events: DataFrame, settings: Large, tables: Tables) -> DataFrame:
    amount = money_column(F.col("amount"), F.col("currency"))
    reason = F.format_string("%s at merchant %s is above the limit", amount, "merchant_id")
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=reason, values={"amount": amount}))


detector = Detector(detect, settings=Large)
