"""One Spark session for all integration tests of a process, and one platform for each file; a test uses
topics of its own, or looks only at what it has added to shared ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.topics import Topics
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.spark.conf import most_slots
from tests.brokers import Broker, own_platform
from tests.integration.clients import forget_clients
from tests.integration.probe import close_probes
from tests.plugins.warm_host import hosts_of_the_run
from tests.streams import AUTH
from tests.worker_session import worker_session


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


@pytest.fixture(autouse=True, scope="module")
def _tools_share_a_host(request: pytest.FixtureRequest) -> Iterator[None]:
    if hasattr(request.config, "workerinput"):
        worker_session()  # else what needs Spark in this process first would make it a client of the shared host
    with hosts_of_the_run():
        yield


@pytest.fixture
def no_short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All batches in Real-Time Mode last as long as declared, in jobs with a process of their own too."""
    monkeypatch.setenv("LOZENGE_JOB_SHORT_BATCHES", "0")


@pytest.fixture(scope="module")
def kafka(broker: Broker) -> Iterator[KafkaSettings]:
    """The broker with a platform of the file's own: no other file has its topics, groups or transactional ids.

    A test names them by `kafka.topics`.
    """
    with own_platform(broker) as platform:
        announce(platform, [AUTH.event_schema])  # as the first start of upstream does
        yield platform


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The process's Spark session, the same for all tests; Real-Time Mode needs a slot for each task of a query."""
    slots = most_slots(Topics().partitions)
    session = worker_session()
    there = int(str(session.sparkContext.master).removeprefix("local[").removesuffix("]"))
    assert there >= slots, "somebody has started Spark with too few slots"
    yield session
    session.stop()
