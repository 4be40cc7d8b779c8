"""Flags an approved or declined authorisation above the limit for its kind of merchant.

Fires on the amount alone, in the authorisation's own currency; it misses thieves who stay below the
limit, and it knows nothing of the cardholder's habits.
"""

from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert, money_column


class LargeAmount(Settings):
    """`default_limit` holds for merchant categories without a row in the table of limits."""

    default_limit: Decimal = Decimal("220")


def detect(events: DataFrame, settings: LargeAmount, tables: Tables) -> DataFrame:
    """One alert for each event whose amount is above its category's limit."""
    limit = F.coalesce(F.col("mcc_limit"), F.lit(settings.default_limit))
    over = F.col("amount") / limit
    return (
        events.join(F.broadcast(tables["mcc_limits"]), "mcc", "left")
        .where(F.col("amount") > limit)
        .select(
            *alert(
                reason=F.format_string(
                    "%s at merchant %s is above the limit of %s for category %s",
                    money_column(F.col("amount"), F.col("currency")),
                    F.col("merchant_id"),
                    money_column(limit, F.col("currency")),
                    F.col("mcc"),
                ),
                score=F.least(F.lit(1.0), (1 - 0.5 / over).cast("double")),
                values={"amount": F.col("amount"), "limit": limit, "mcc": F.col("mcc")},
            )
        )
    )


detector = Detector(detect, settings=LargeAmount)
