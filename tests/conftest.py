"""The broker of a test run, and what the run says first: which broker that is, and why."""

from collections.abc import Iterator

import pytest

from tests.brokers import Broker, container_wanted, docker_answers, wanted_broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker, the same for all tests of a process."""
    with wanted_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def pytest_report_header() -> str:
    docker = "Docker is there" if docker_answers() else "Docker does not answer"
    if container_wanted():
        used = "Kafka in a container" if docker_answers() else "the embedded one all the same"
        return f"broker: {docker}, so LOZENGE_TEST_BROKER=container means {used}"
    return f"broker: embedded ({docker}; LOZENGE_TEST_BROKER=container asks for one in a container)"
