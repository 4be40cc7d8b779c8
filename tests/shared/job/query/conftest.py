"""What the tests of queries share: one Spark session, that of the integration tests of the same process, and records.

A test that needs it counts as one of the integration tests.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.headers import TRACEPARENT
from lozenge.job.query import canonical_events
from lozenge.spark import kafka_source
from tests.streams import AUTH, event_codec
from tests.worker_session import worker_session

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CODEC = event_codec()
Record = tuple[int, int, bytes]
"""Partition, offset and value."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "query_spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def query_spark() -> SparkSession:
    """The session of the process."""
    return worker_session()


def event(number: int, **more: Any) -> dict[str, Any]:
    """A canonical event; `number` makes its id."""
    return {
        "event_id": f"event-{number}",
        "event_time": NOON,
        "card_id": "card_1",
        "account_id": None,
        "merchant_id": "m-1",
        "terminal_id": "t-1",
        "mcc": "5411",
        "country": "DE",
        "amount": Decimal("10.00"),
        "currency": "EUR",
        "channel": "pos",
        "auth_result": "approved",
        "raw": {"source": "test", "topic": "AUTH-JSON", "partition": 0, "offset": number, "timestamp": NOON},
    } | more


def raw(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    """Records of the canonical topic, as they come from Kafka."""
    headers = [("other", b"x"), (TRACEPARENT, TRACE.encode())]
    return spark.createDataFrame([(v, p, o, headers) for p, o, v in records], kafka_source.RECORDS)


def events(spark: SparkSession, *given: dict[str, Any]) -> DataFrame:
    """The events at offsets 0, 1 and so on of partition 1, as a detector gets them."""
    records = [(1, offset, CODEC.encode(each)) for offset, each in enumerate(given)]
    return canonical_events.events(raw(spark, records), AUTH.schemas, AUTH, "card_id")


def stream(spark: SparkSession, folder: object) -> DataFrame:
    """Events of a stream that has not been started."""
    records = spark.readStream.schema(kafka_source.RECORDS).parquet(str(folder))
    return canonical_events.events(records, AUTH.schemas, AUTH, "card_id")
