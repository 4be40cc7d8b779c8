"""Flags an authorisation above the limit for its kind of merchant, approved or not.

The limit is a plain number in the currency of the authorisation. It misses thieves who stay below the limit, and
ignores the cardholder's habits.
"""

from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert, money_column


class LargeAmount(Settings):
    """`default_limit` is the limit of merchant categories without a row in the table."""

    default_limit: Decimal = Decimal("220")


def detect(events: DataFrame, settings: LargeAmount, tables: Tables) -> DataFrame:
    """One alert for each event whose amount is above its category's limit."""
    amount, currency = F.col("amount"), F.col("currency")
    limit = F.coalesce("mcc_limit", F.lit(settings.default_limit))
    spent = F.format_string("%s at merchant %s", money_column(amount, currency), "merchant_id")
    why = F.when(
        F.col("mcc_limit").isNotNull(),
        F.format_string("%s is above the limit of %s for category %s", spent, money_column(limit, currency), "mcc"),
    ).otherwise(F.format_string("%s is above the general limit of %s", spent, money_column(limit, currency)))
    # from 0.5 just above the limit towards 1 far above it; an amount of zero gives null instead of an error
    score = F.coalesce(1 - 0.5 * F.try_divide(limit, amount), F.lit(1.0))
    return (
        events.join(F.broadcast(tables["mcc_limits"]), "mcc", "left")
        .where(amount > limit)
        .select(*alert(reason=why, score=score, values={"amount": amount, "limit": limit, "mcc": F.col("mcc")}))
    )


detector = Detector(detect, settings=LargeAmount)
