"""Kafka record headers as Spark expressions; the same as `lozenge.contracts.headers`."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

TYPE = "array<struct<key:string,value:binary>>"
"""The type of the headers column of Spark's Kafka source and sink."""
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


def headers(texts: Mapping[str, Column]) -> Column:
    """The headers of these names with these texts, in this order."""
    return F.array(
        *(F.struct(F.lit(k).alias("key"), text.cast("binary").alias("value")) for k, text in texts.items())
    ).cast(TYPE)


def time(moment: Column | str) -> Column:
    """A timestamp as CloudEvents write it, in UTC with microseconds."""
    return F.date_format(moment, _TIME)
