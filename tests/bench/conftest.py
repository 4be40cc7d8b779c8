"""What the benchmarks of the job share: one broker with the backlog, one Spark session; and when they are collected."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.session import spark_session
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.backlog import events, produce
from tests.bench.harness.platform import TOPICS
from tests.streams import every_topic

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What measures only when it is named (make bench-pytest); the tests of the harness always."""
    measures = collection_path.parent == HERE and collection_path.is_file()
    return True if measures and not any("bench" in named for named in config.args) else None


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker with the backlog."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap_mb=512) as broker:
        settings = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(settings, every_topic(TOPICS))
        produce(settings, events())
        yield settings


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two cores and the heap that a detector with a large batch would be given."""
    session = spark_session("bench", cores=2, memory_mb=1536, conf={"spark.driver.maxResultSize": "768m"})
    yield session
    session.stop()
