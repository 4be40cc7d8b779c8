"""Encodes alerts as column expressions: the records that `AlertEncoder` makes in Python, as rows of Spark's Kafka sink.

Real-Time Mode passes rows from operator to operator one by one, and a Python worker would hold them until the batch
ends. The records equal those of `AlertEncoder`, but `detected_at` is the time at which Spark processed the row.
"""

from collections.abc import Mapping
from typing import get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lozenge.contracts import ids
from lozenge.contracts.alert import ALERT_TYPE, OWNER
from lozenge.contracts.display_text import VISIBLE
from lozenge.contracts.partitioner import partition_column
from lozenge.contracts.schemas import newest
from lozenge.detector.events import MAX_CHARACTERS, Severity
from lozenge.detector.manifest import Manifest
from lozenge.job.alert_fields import Fields, Source, record_fields, source_of
from lozenge.job.identity import Identity
from lozenge.job.operators.rows import REQUIRED
from lozenge.protocol.coverage import Versions
from lozenge.spark import avro
from lozenge.spark import headers as spark_headers
from lozenge.spark.row_latency import now_millis

ALERT_ID, TOOK = "alert_id", "took"
"""Columns next to those of the sink: the alert id, and the milliseconds since the raw record arrived (or null)."""


def alert_rows(alerts: DataFrame, identity: Identity, manifest: Manifest, versions: Versions) -> DataFrame:
    """For each row of `lozenge.alert` columns: the columns of Spark's Kafka sink, `ALERT_ID` and `TOOK`.

    A row that cannot be written fails the query, with the message of `operators.rows.from_row`.
    """
    texts = {name: F.transform_values(_texts(name), lambda _, text: F.coalesce(text, F.lit(""))) for name in _MAPS}
    complete = alerts.withColumns(
        {
            **texts,
            "evidence": F.filter(F.coalesce("evidence", F.array().cast("array<string>")), lambda e: e.isNotNull()),
            ALERT_ID: ids.alert_id_column(identity.detector, identity.key, F.col("entity"), F.col("dedup_key")),
            "detected_at": F.timestamp_millis(now_millis()),
        }
    )
    valid = complete.withColumn("problem", _problem()).withColumns(
        {
            # a written column has to raise the error: the optimiser removes a check that no written column needs
            "entity": F.when(F.col("problem") == "", F.col("entity")).otherwise(F.raise_error(F.col("problem"))),
            "labels": F.map_concat(
                F.map_filter("labels", lambda name, _: name != F.lit(OWNER)),
                F.create_map(F.lit(OWNER), F.lit(manifest.owner)),
            ),
        }
    )
    return valid.select(
        F.lit(identity.alerts).alias("topic"),
        partition_column(F.col("entity"), identity.topics.partitions).alias("partition"),
        F.col("entity").cast("binary").alias("key"),
        avro.encode(_struct(record_fields(identity, manifest, versions)), newest("alert")).alias("value"),
        _headers(identity).alias("headers"),
        ALERT_ID,
        (F.unix_millis("detected_at") - F.unix_millis("arrived")).alias(TOOK),
    )


_MAPS = ("values", "labels")


def _texts(name: str) -> Column:
    return F.coalesce(F.col(name), F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<string>")))


def _problem() -> Column:
    """Why a row cannot be written; "" if it can."""
    missing = F.concat_ws(", ", *(F.when(F.col(name).isNull(), F.lit(name)) for name in REQUIRED))
    severities = get_args(Severity)
    length = F.length(
        F.concat_ws(
            "",
            *("reason", "title", "evidence"),
            *(part for name in _MAPS for part in (F.map_keys(F.col(name)), F.map_values(F.col(name)))),
        )
    )
    wrong = F.concat_ws(
        "; ",
        F.when(
            ~F.col("score").between(0, 1),
            F.concat(F.lit("score "), F.col("score").cast("string"), F.lit(" does not lie between 0 and 1")),
        ),
        F.when(
            ~F.col("severity").isin(*severities),
            F.concat(F.lit("severity '"), F.col("severity"), F.lit(f"' is none of {', '.join(severities)}")),
        ),
        F.when(
            length > MAX_CHARACTERS,
            F.concat(F.lit("it holds "), length.cast("string"), F.lit(f" characters, more than {MAX_CHARACTERS}")),
        ),
    )
    begin = F.lit("the alert cannot be written: ")
    return (
        F.when(missing != "", F.concat(begin, F.lit("its "), missing, F.lit(" is null")))
        .when(wrong != "", F.concat(begin, wrong))
        .otherwise(F.lit(""))
    )


def _struct(fields: Fields) -> Column:
    return F.struct(
        *(
            (_value(source) if isinstance(source, Source) else _struct(source)).alias(name)
            for name, source in fields.items()
        )
    )


def _value(source: Source) -> Column:
    if isinstance(source.constant, Mapping):
        names, versions = (F.array(*map(F.lit, texts)) for texts in (source.constant.keys(), source.constant.values()))
        return F.map_from_arrays(names.cast("array<string>"), versions.cast("array<string>"))
    constant = F.lit(source.constant).cast("string")
    if not source.column:
        return constant
    column = F.col(source.column)
    return column if source.constant is None else F.when(column.rlike(VISIBLE), column).otherwise(constant)


def _headers(identity: Identity) -> Column:
    digits = F.replace(F.col(ALERT_ID), F.lit("-"), F.lit(""))
    derived = F.concat(F.lit("00-"), digits, F.lit("-"), F.left(digits, F.lit(16)), F.lit("-01"))
    given = F.when(F.length("traceparent") > 0, F.col("traceparent"))
    return spark_headers.cloud_event(
        id=F.col(ALERT_ID),
        source=source_of(identity),
        type=ALERT_TYPE,
        subject=F.col("entity"),
        time=F.col("event_time"),
        traceparent=F.coalesce(given, derived),
    )
