"""The records that Spark makes of alerts are those that `AlertEncoder` makes, and the same rows are refused."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lozenge import alert
from lozenge.contracts.avro import Codec
from lozenge.job.batch_result import DraftAlert
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.alert_columns import ALERT_ID, TOOK, alert_rows
from lozenge.protocol.coverage import Versions
from tests.shared.job.commit.scripted import LIVE, declared
from tests.shared.job.query.conftest import event, events

MANIFEST = declared(severity="high", title="A test")
VERSIONS = Versions("d2", {"limits": "0123456789ab"})
ALERT = Codec.of("alert")
ENCODER = AlertEncoder(LIVE, MANIFEST, VERSIONS)


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


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """One query for all of them."""
    return reduce(DataFrame.unionByName, frames)


@pytest.fixture(scope="module")
def written(query_spark: SparkSession) -> Mapping[str, tuple[DraftAlert, Row]]:
    """The draft and the row of each of `ALERTS`, by name; each is about an event of its own."""
    frame = union(
        of(query_spark, event(number), **made()).withColumn("reason", F.lit(name))
        for number, (name, made) in enumerate(ALERTS.items())
    )
    drafts = RuleOperator(frame).process(RuleOperator(frame).frame().toArrow()).alerts
    rows = {row[ALERT_ID]: row for row in alert_rows(frame, LIVE, MANIFEST, VERSIONS).collect()}
    assert len(drafts) == len(rows) == len(ALERTS)
    return {draft.alert.reason: (draft, rows[ENCODER.alert_id(draft)]) for draft in drafts}


@pytest.mark.parametrize("name", ALERTS)
def test_a_record_is_that_of_the_encoder_but_for_its_time(
    name: str, written: Mapping[str, tuple[DraftAlert, Row]]
) -> None:
    draft, row = written[name]
    wanted = ENCODER.record(draft, datetime.now(UTC))
    assert (row.topic, row.partition, row.key) == (wanted.topic, wanted.partition, wanted.key)
    found, expected = ALERT.decode(bytes(row.value)), ALERT.decode(wanted.value)
    assert found.pop("detected_at") <= datetime.now(UTC)
    expected.pop("detected_at")
    assert found == expected
    assert [(header.key, bytes(header.value)) for header in row.headers] == [*wanted.headers]
    assert row[TOOK] > 0, "since the raw record arrived"


REFUSED = (
    ("score", "cast(null as double)", "its score is null"),
    ("score", "1.5D", "score 1.5 does not lie between 0 and 1"),
    ("score", "double('NaN')", "does not lie between 0 and 1"),
    ("reason", "cast(null as string)", "its reason is null"),
    ("severity", "'huge'", "severity 'huge' is none of"),
    ("reason", "repeat('x', 2000000)", "characters, more than"),
)


def wrong(spark: SparkSession, number: int) -> DataFrame:
    """An alert about an event of its own, with a value that no alert may have."""
    column, value, _ = REFUSED[number]
    its = events(spark, *map(event, range(len(REFUSED)))).where(F.col("event_id") == f"event-{number}")
    return its.select(*alert(reason=F.lit("seen"))).withColumn(column, F.expr(value))


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_row_that_cannot_be_written_fails_with_the_words_of_the_encoder(
    number: int, query_spark: SparkSession
) -> None:
    with pytest.raises(Exception, match=REFUSED[number][2]):
        alert_rows(wrong(query_spark, number), LIVE, MANIFEST, VERSIONS).collect()


def test_the_encoder_refuses_the_same_rows(query_spark: SparkSession) -> None:
    frame = union(wrong(query_spark, number) for number in range(len(REFUSED)))
    failures = [
        str(failed.error) for failed in RuleOperator(frame).process(RuleOperator(frame).frame().toArrow()).failures
    ]
    assert len(failures) == len(REFUSED)
    for *_, words in REFUSED:
        assert any(words in failure for failure in failures), failures


def test_an_event_without_a_trace_gives_its_alert_one_of_its_own(query_spark: SparkSession) -> None:
    frame = of(query_spark).withColumn("traceparent", F.lit(None).cast("string"))
    [row] = alert_rows(frame, LIVE, MANIFEST, VERSIONS).collect()
    digits = row[ALERT_ID].replace("-", "")
    [trace] = [bytes(h.value).decode() for h in row.headers if h.key == "traceparent"]
    assert trace == f"00-{digits}-{digits[:16]}-01"
