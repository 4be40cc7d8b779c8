"""One Spark session for all contracts, which is that of the integration tests where these run in the same process."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session
from tests.brokers import Broker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The process's session."""
    return spark_session("tests", cores=most_slots(Topics().partitions), memory_mb=1024)


@pytest.fixture
def kafka(broker: Broker) -> KafkaSettings:
    """The broker of the run; each contract has topics and a transactional id of its own."""
    return KafkaSettings(bootstrap=broker.bootstrap)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of files that has not been started."""
    return spark.readStream.schema("k string, v bigint, at timestamp").json(str(tmp_path))
