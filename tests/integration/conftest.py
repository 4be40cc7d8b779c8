"""One broker and one Spark session for all integration tests of a run; a test uses
topics of its own, or looks only at what it has added to shared ones."""

import os
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from lozenge.contracts.topics import Topics
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.conf import most_slots
from lozenge.spark.session import spark_session
from lozenge_deploy.local.broker_jvm import SETTINGS
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.ports import free_port
from tests.conftest import container_wanted, docker_answers
from tests.integration.clients import forget_clients
from tests.integration.probe import close_probes


class Broker(Protocol):
    """What a test may rely on, wherever the broker runs."""

    @property
    def bootstrap(self) -> str: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(autouse=True)
def _probes_end_with_the_test() -> Iterator[None]:
    yield
    close_probes()


@pytest.fixture(autouse=True, scope="module")
def _clients_end_with_the_file() -> Iterator[None]:
    yield
    forget_clients()


@pytest.fixture
def no_short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All batches in Real-Time Mode last as long as declared, in jobs with a process of their own too."""
    monkeypatch.setenv("LOZENGE_JOB_SHORT_BATCHES", "0")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker, the same for all tests."""
    in_container = container_wanted() and docker_answers()
    embedded = EmbeddedBroker(tmp_path_factory.mktemp("broker"))
    started: AbstractContextManager[Broker] = _container() if in_container else embedded
    with started as running:
        yield running


@contextmanager
def own_platform(broker: Broker, partitions: int = 4) -> Iterator[KafkaSettings]:
    """The broker with a platform that no other test has. Its topics are those that belong to no detector.

    All topics of the platform are deleted after the block.
    """
    prefix = f"t{uuid.uuid4().hex[:8]}."
    platform = KafkaSettings(bootstrap=broker.bootstrap, topic_prefix=prefix, partitions=partitions)
    ensure_topics(platform, platform.topics.platform_topics())
    try:
        yield platform
    finally:
        names = [name for name in topic_admin.partitions(platform) if name.startswith(prefix)]
        AdminClient(platform.client()).delete_topics(names)


@pytest.fixture(scope="module")
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    """The broker with a platform of the file's own: no other file has its topics, groups or transactional ids.

    A test names them by `kafka.topics`.
    """
    with own_platform(broker) as platform:
        yield platform


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The process's Spark session, the same for all tests; Real-Time Mode needs a slot for each task of a query."""
    slots = most_slots(Topics().partitions)
    session = spark_session("tests", cores=slots, memory_mb=1024)
    assert session.sparkContext.master == f"local[{slots}]", "somebody has started Spark with too few slots"
    yield session
    session.stop()


@dataclass(frozen=True)
class _Container:
    bootstrap: str


@contextmanager
def _container() -> Iterator[Broker]:
    """Kafka's own image under the embedded broker's settings, reachable on loopback only."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    port = free_port(0)
    settings = dict(line.split("=", 1) for line in SETTINGS.read_text().splitlines() if "=" in line and line[0] != "#")
    settings |= {
        "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    image = os.environ.get("LOZENGE_TEST_IMAGE", "apache/kafka:4.3.1")
    container = DockerContainer(image).with_kwargs(ports={"9092/tcp": ("127.0.0.1", port)})
    for name, value in settings.items():
        container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
    with container.waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(120)):
        yield _Container(f"127.0.0.1:{port}")
