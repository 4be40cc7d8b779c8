"""The tests here that need Spark share the session of the integration tests, under upstream's own settings."""

import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.topics import Topics
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session
from tests.upstream.samples import as_upstream


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "upstream_spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def upstream_spark() -> SparkSession:
    """A session that plans as upstream's does."""
    return as_upstream(spark_session("tests", cores=most_slots(Topics().partitions), memory_mb=1024))
