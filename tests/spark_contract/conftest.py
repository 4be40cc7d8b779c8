"""One Spark session for all contracts, which is that of the integration tests where these run in the same process."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge.kafka.settings import KafkaSettings
from tests.brokers import Broker
from tests.worker_session import worker_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The process's session."""
    return worker_session()


@pytest.fixture
def kafka(broker: Broker) -> KafkaSettings:
    """The broker of the run; each contract has topics and a transactional id of its own."""
    return KafkaSettings(bootstrap=broker.bootstrap)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of files that has not been started."""
    return spark.readStream.schema("k string, v bigint, at timestamp").json(str(tmp_path))
