"""What every test run says first: which broker the integration tests use, and why."""

import os
import shutil
import subprocess
from functools import cache


@cache
def docker_answers() -> bool:
    """Whether a Docker daemon can start containers for us."""
    return bool(shutil.which("docker")) and not subprocess.run(["docker", "info"], capture_output=True).returncode


def container_wanted() -> bool:
    """Whether this run asked for Kafka in a container instead of the embedded broker."""
    return os.environ.get("LOZENGE_TEST_BROKER") == "container"


def pytest_report_header() -> str:
    docker = "Docker is there" if docker_answers() else "Docker does not answer"
    if container_wanted():
        used = "Kafka in a container" if docker_answers() else "the embedded one all the same"
        return f"broker: {docker}, so LOZENGE_TEST_BROKER=container means {used}"
    return f"broker: embedded ({docker}; LOZENGE_TEST_BROKER=container asks for one in a container)"
