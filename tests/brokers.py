"""The broker of the tests, embedded or in a container, and platforms in it that one test has for itself."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient

from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.local.broker_jvm import SETTINGS
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.local.ports import free_port
from tests.streams import every_topic


class Broker(Protocol):
    """What a test may rely on, wherever the broker runs."""

    @property
    def bootstrap(self) -> str: ...


@cache
def docker_answers() -> bool:
    """Whether a Docker daemon can start containers for us."""
    return bool(shutil.which("docker")) and not subprocess.run(["docker", "info"], capture_output=True).returncode


def container_wanted() -> bool:
    """Whether this run requested Kafka in a container instead of the embedded broker."""
    return os.environ.get("LOZENGE_TEST_BROKER") == "container"


def wanted_broker(folder: Path) -> AbstractContextManager[Broker]:
    """A broker that runs for the length of the block; an embedded one has its data in `folder`."""
    return _container() if container_wanted() and docker_answers() else EmbeddedBroker(folder)


@contextmanager
def own_platform(broker: Broker, partitions: int = 4) -> Iterator[KafkaSettings]:
    """The broker with a platform that no other test has. Its topics are those that belong to no detector.

    All topics of the platform are deleted after the block.
    """
    prefix = f"t{uuid.uuid4().hex[:8]}."
    platform = KafkaSettings(bootstrap=broker.bootstrap, topic_prefix=prefix, partitions=partitions)
    ensure_topics(platform, every_topic(platform.topics))
    try:
        yield platform
    finally:
        names = [name for name in topic_admin.partitions(platform) if name.startswith(prefix)]
        AdminClient(platform.client()).delete_topics(names)


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
