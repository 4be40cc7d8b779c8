"""Alerts of another detector as events: their fields without nesting, and where their records are."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from lozenge.streams.alert_stream import ENTITY, ENTITY_TYPE, MADE, PATHS
from lozenge.streams.definition import StreamDefinition


def event(alert: str, stream: StreamDefinition) -> Column:
    """The event of the struct column `alert`, whose record is at `partition` and `offset`, in the fields of `stream`.

    An alert about another kind of entity than the key of `stream`, of an earlier release for example, has no entity.
    """
    fields = {name: F.col(f"{alert}.{path}") for name, path in PATHS.items()}
    fields[ENTITY] = F.when(F.col(f"{alert}.{ENTITY_TYPE}") == stream.primary, fields[ENTITY])
    raw = F.struct(
        F.lit(stream.alerts_of).alias("source"),
        F.lit(stream.raw_topics[0]).alias("topic"),
        "partition",
        "offset",
        F.col(f"{alert}.{MADE}").alias("timestamp"),
    )
    return F.struct(*(column.alias(name) for name, column in fields.items()), raw.alias("raw"))
