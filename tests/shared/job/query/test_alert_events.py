"""Alerts of another detector become events, each with the id of the alert and the place of its record."""

from pyspark.sql import SparkSession

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import packaged
from lozenge.detector.definition import INPUT
from lozenge.job.query.canonical_events import events, malformed
from lozenge.streams.alert_stream import PATHS, event_of
from lozenge.testing.events import event_table
from lozenge.testing.events import events as made_for_tests
from tests.alert_streams import LARGE, NOON, alert
from tests.shared.job.query.conftest import TRACE, raw

CODEC = Codec.of("alert")
EARLIER = Codec(next(schema for schema in packaged() if schema.name == "alert" and schema.version == 1))


def test_an_alert_is_an_event_whichever_version_of_the_schema_it_has(query_spark: SparkSession) -> None:
    old = {name: value for name, value in alert(2).items() if name != "table_versions"}
    records = [(3, 7, CODEC.encode(alert(1))), (3, 8, EARLIER.encode(old))]
    found = events(raw(query_spark, records), LARGE.schemas, LARGE, "entity")
    assert found.columns == [*PATHS, "raw", INPUT]
    first, second = found.collect()
    made = 1 + NOON.timestamp()
    for row, given in ((first, alert(1)), (second, alert(2))):
        expected = event_of(given)
        assert {name: row[name] for name in PATHS if name not in ("event_time", "detected_at")} == {
            name: value for name, value in expected.items() if name not in ("event_time", "detected_at")
        }
        assert (row.event_time.timestamp(), row.detected_at.timestamp()) == (NOON.timestamp(), made)
    own = first[INPUT]
    assert (own.key, own.partition, own.offset, own.traceparent) == ("card_1", 3, 7, TRACE)
    assert own.arrived.timestamp() == made, "latency counts from the moment at which the alert was made"
    assert (first.raw.source, first.raw.topic) == ("large_amount", "pay.alerts.large_amount.v1")
    assert (second.raw.partition, second.raw.offset, second.raw.timestamp.timestamp()) == (3, 8, made)


def test_an_alert_about_something_else_is_no_event(query_spark: SparkSession) -> None:
    given = [alert(1), alert(2, "account_1", entity_type="account")]
    records = [(0, offset, CODEC.encode(each)) for offset, each in enumerate(given)]
    assert [row.event_id for row in events(raw(query_spark, records), LARGE.schemas, LARGE, "entity").collect()] == [
        "alert-1"
    ]


def test_what_is_no_alert_is_found(query_spark: SparkSession) -> None:
    records = [(0, 1, CODEC.encode(alert(1))), (0, 2, b"text"), (1, 3, CODEC.encode(alert(1))[:-2])]
    found = malformed(raw(query_spark, records), LARGE.schemas, LARGE).collect()
    assert {(row.partition, row.offset) for row in found} == {(0, 2), (1, 3)}


def test_tests_of_detectors_have_the_same_columns(query_spark: SparkSession) -> None:
    frame = events(raw(query_spark, []), LARGE.schemas, LARGE, "entity")
    table = event_table(made_for_tests([{}], LARGE), "entity", LARGE)
    assert query_spark.createDataFrame(table).schema.simpleString() == frame.schema.simpleString()
