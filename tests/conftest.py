"""The broker of a test run, what the run says first (which broker that is, and why), and how much Hypothesis tries.

The suite tries the same examples of a property in each run, so that a failure there comes from the last change.
HYPOTHESIS_PROFILE=nightly tries 100,000 others of each property that sets no number of its own.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.brokers import Broker, container_wanted, docker_answers, wanted_broker

# no deadline: a loaded machine is no error
settings.register_profile("suite", deadline=None, max_examples=60, derandomize=True)
settings.register_profile(
    "nightly", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# what tests start in other folders reads the streams of this project
os.environ.setdefault("LOZENGE_STREAMS", str(Path(__file__).parents[1] / "upstream" / "streams"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


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
