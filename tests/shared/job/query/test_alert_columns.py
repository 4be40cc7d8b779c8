"""The records that Spark makes of alerts are those that `AlertEncoder` makes, and the same rows are refused."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import alert
from lozenge.contracts.avro import Codec
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.alert_columns import ALERT_ID, TOOK, alert_rows
from lozenge.protocol.coverage import Versions
from tests.shared.job.commit.scripted import LIVE, declared
from tests.shared.job.query.conftest import event, events

MANIFEST = declared(severity="high", title="A test")
VERSIONS = Versions("d2", {"limits": "0123456789ab"})
ALERT = Codec.of("alert")


def of(spark: SparkSession, *given: dict[str, Any], **columns: Any) -> DataFrame:
    return events(spark, *(given or (event(1),))).select(*alert(**{"reason": F.lit("seen"), **columns}))


ALERTS: dict[str, Any] = {
    "the least": dict,
    "everything": lambda: {
        "score": F.lit(0.25),
        "title": F.concat(F.lit("über "), "merchant_id"),
        "severity": "low",
        "evidence": F.array("event_id", F.lit(None)),
        "values": {"amount": F.col("amount"), "none": F.lit(None).cast("string")},
        "labels": {"country": F.col("country")},
        "band": "50",
    },
    "a blank title": lambda: {"title": F.lit(" \u200b ")},
    "an owner of its own": lambda: {"labels": {"owner": F.lit("somebody")}},
    "no evidence": lambda: {"evidence": F.lit(None).cast("array<string>")},
}


@pytest.mark.parametrize("name", ALERTS)
def test_a_record_is_that_of_the_encoder_but_for_its_time(name: str, query_spark: SparkSession) -> None:
    frame = of(query_spark, **ALERTS[name]())
    [draft] = RuleOperator(frame).process(RuleOperator(frame).frame().toArrow()).alerts
    encoder = AlertEncoder(LIVE, MANIFEST, VERSIONS)
    wanted = encoder.record(draft, datetime.now(UTC))
    [row] = alert_rows(frame, LIVE, MANIFEST, VERSIONS).collect()
    assert (row.topic, row.partition, row.key) == (wanted.topic, wanted.partition, wanted.key)
    assert row[ALERT_ID] == encoder.alert_id(draft)
    found, expected = ALERT.decode(bytes(row.value)), ALERT.decode(wanted.value)
    assert found.pop("detected_at") <= datetime.now(UTC)
    expected.pop("detected_at")
    assert found == expected
    assert [(header.key, bytes(header.value)) for header in row.headers] == [*wanted.headers]
    assert row[TOOK] > 0, "since the raw record arrived"


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("score", "cast(null as double)", "its score is null"),
        ("score", "1.5D", "score 1.5 does not lie between 0 and 1"),
        ("score", "double('NaN')", "does not lie between 0 and 1"),
        ("reason", "cast(null as string)", "its reason is null"),
        ("severity", "'huge'", "severity 'huge' is none of"),
        ("reason", "repeat('x', 2000000)", "characters, more than"),
    ],
)
def test_a_row_that_cannot_be_written_fails_with_the_words_of_the_encoder(
    column: str, value: str, words: str, query_spark: SparkSession
) -> None:
    frame = of(query_spark).withColumn(column, F.expr(value))
    with pytest.raises(Exception, match=words):
        alert_rows(frame, LIVE, MANIFEST, VERSIONS).collect()
    [failed] = RuleOperator(frame).process(RuleOperator(frame).frame().toArrow()).failures
    assert words in str(failed.error)


def test_an_event_without_a_trace_gives_its_alert_one_of_its_own(query_spark: SparkSession) -> None:
    frame = of(query_spark).withColumn("traceparent", F.lit(None).cast("string"))
    [row] = alert_rows(frame, LIVE, MANIFEST, VERSIONS).collect()
    digits = row[ALERT_ID].replace("-", "")
    [trace] = [bytes(h.value).decode() for h in row.headers if h.key == "traceparent"]
    assert trace == f"00-{digits}-{digits[:16]}-01"
