"""A bench and a session of upstream's for the tests that run its parts in this process."""

import pytest
from pyspark.sql import SparkSession

from lozenge.kafka.settings import KafkaSettings
from tests.integration.upstream.upstream_bench import Bench
from tests.upstream.samples import as_upstream


@pytest.fixture
def bench(kafka: KafkaSettings) -> Bench:
    return Bench(kafka)


@pytest.fixture(scope="session")
def upstream_spark(spark: SparkSession) -> SparkSession:
    """A session that plans as upstream's does."""
    return as_upstream(spark)
