"""The plan of all sources; no record is read."""

import pytest
from pyspark.sql import SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.internals import plans
from lozenge.spark.kafka_sink import COLUMNS
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.query_builder import stream
from lozenge_upstream.streaming.recovery_read import RecoveryRead
from tests.upstream.samples import ISO, JSON, PARTITIONS, target


@pytest.mark.parametrize("topics", [[JSON.topic], [JSON.topic, ISO.topic]], ids=["one", "both"])
def test_each_source_that_has_offsets_is_a_stream_of_its_own(upstream_spark: SparkSession, topics: list[str]) -> None:
    kafka = KafkaSettings(bootstrap="127.0.0.1:1")
    rows = stream(
        upstream_spark,
        kafka,
        UpstreamSettings(),
        target("terminal"),
        [JSON, ISO],
        {topic: {"0": 3} for topic in topics},
        PARTITIONS,
        RecoveryRead(),
    )
    assert rows.isStreaming
    assert set(COLUMNS) <= set(rows.columns)
    nodes = [node for node in plans.logical_plan(rows).walk() if not node.inputs]
    assert len(nodes) == len(topics)
