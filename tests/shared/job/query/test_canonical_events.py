"""Records become events with their position, trace and arrival; what is no event is found without the detector."""

from datetime import timedelta
from pathlib import Path

from pyspark.sql import Row, SparkSession

from lozenge.detector.definition import INPUT
from lozenge.job.query.canonical_events import events, malformed, watermarked, without
from lozenge.spark import avro
from lozenge.spark.internals import plans
from tests.shared.job.query.conftest import CODEC, NOON, TRACE, event, raw, stream
from tests.streams import AUTH

KNOWN = [AUTH.event_schema]


def test_an_event_has_all_of_its_fields_and_the_platforms_in_the_last_column(query_spark: SparkSession) -> None:
    found = events(raw(query_spark, [(3, 7, CODEC.encode(event(1)))]), KNOWN, AUTH, "merchant_id")
    assert found.columns == [*(field["name"] for field in AUTH.event_schema.definition["fields"]), INPUT]
    [row] = found.collect()
    assert (row.event_id, row.amount, row.account_id) == ("event-1", event(1)["amount"], None)
    platforms = row[INPUT]
    assert (platforms.key, platforms.partition, platforms.offset, platforms.traceparent) == ("m-1", 3, 7, TRACE)
    assert platforms.arrived.timestamp() == NOON.timestamp()


def test_an_event_without_the_key_is_skipped(query_spark: SparkSession) -> None:
    given = [event(1), event(2, account_id="a-1")]
    records = raw(query_spark, [(0, offset, CODEC.encode(each)) for offset, each in enumerate(given)])
    assert [row.event_id for row in events(records, KNOWN, AUTH, "account_id").collect()] == ["event-2"]


def test_a_record_without_headers_has_no_trace(query_spark: SparkSession) -> None:
    records = query_spark.createDataFrame(
        [(CODEC.encode(event(1)), 0, 0, None), (CODEC.encode(event(2)), 0, 1, [])],
        "value binary, partition int, offset bigint, headers array<struct<key: string, value: binary>>",
    )
    assert [row[INPUT].traceparent for row in events(records, KNOWN, AUTH, "card_id").collect()] == [
        None,
        None,
    ]


def test_what_is_no_event_is_found_with_its_place_and_cause_and_nothing_else(query_spark: SparkSession) -> None:
    good = CODEC.encode(event(1))
    records = [(0, 1, good), (0, 2, b"text"), (1, 2, good + b"left over"), (1, 3, b"\0\0\0\0\x63" + good[5:])]
    found = {(row.partition, row.offset): avro.words_of(row.problem) for row in malformed_of(query_spark, records)}
    assert found.keys() == {(0, 2), (1, 2), (1, 3)}
    assert "no Confluent header" in str(found[0, 2])
    assert "left over" in str(found[1, 2])
    assert "schema id 99 is unknown" in str(found[1, 3])


def malformed_of(spark: SparkSession, records: list[tuple[int, int, bytes]]) -> list[Row]:
    return malformed(raw(spark, records), KNOWN, AUTH).collect()


def test_excluded_records_are_skipped_and_their_neighbours_are_not(query_spark: SparkSession) -> None:
    records = raw(query_spark, [(p, o, b"") for p in (0, 1, 2) for o in (0, 1, 2)])
    left = {(row.partition, row.offset) for row in without(records, [(1, 2), (0, 1), (1, 0)]).collect()}
    assert left == {(0, 0), (0, 2), (1, 1), (2, 0), (2, 1), (2, 2)}
    assert without(records, []).count() == 9


def test_a_watermark_is_that_of_each_partition_before_they_are_joined(
    query_spark: SparkSession, tmp_path: Path
) -> None:
    joined = watermarked([stream(query_spark, tmp_path) for _ in range(3)], timedelta(minutes=10))
    names = [node.name for node in plans.logical_plan(joined).walk()]
    assert names.count("EventTimeWatermark") == 3
    assert names.index("Union") < names.index("EventTimeWatermark"), "Spark takes the minimum of those below a union"
