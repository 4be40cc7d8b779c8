"""Kafka record headers as Spark expressions; the same as `lozenge.contracts.headers`."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.contracts import headers as h

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


def cloud_event(*, id: Column, source: str, type: str, subject: Column, time: Column, traceparent: Column) -> Column:
    """`lozenge.contracts.headers.cloud_event` as a column, in the same order."""
    return headers(
        {
            "content-type": F.lit(h.CONTENT_TYPE),
            "ce_specversion": F.lit("1.0"),
            "ce_id": id,
            "ce_source": F.lit(source),
            "ce_type": F.lit(type),
            "ce_subject": subject,
            "ce_time": F.date_format(time, _TIME),
            h.TRACEPARENT: traceparent,
        }
    )
