"""The tests here that need Spark share the session of the integration tests, under upstream's own settings."""

import pytest
from pyspark.sql import SparkSession

from tests.upstream.samples import as_upstream
from tests.worker_session import worker_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "upstream_spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def upstream_spark() -> SparkSession:
    """A session that plans as upstream's does."""
    return as_upstream(worker_session())
