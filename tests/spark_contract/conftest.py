"""One Spark session for all contracts, which is that of the integration tests where these run in the same process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session
from lozenge_deploy.local.embedded_broker import EmbeddedBroker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The process's session."""
    return spark_session("tests", cores=most_slots(Topics().partitions), memory_mb=1024)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker of these contracts alone."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield KafkaSettings(bootstrap=broker.bootstrap)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of files that has not been started."""
    return spark.readStream.schema("k string, v bigint, at timestamp").json(str(tmp_path))
