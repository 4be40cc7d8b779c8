"""Detectors that share a JVM, with all real parts: each is still a process, a release and a failure of its own."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lozenge.host.address import published
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.periodic import every
from lozenge_deploy.hosts.host_process import HOSTS, HostProcess, host_processes
from tests.integration.deploy.sources import write_quick_tests
from tests.integration.deploy.worlds import World, running_world
from tests.integration.harness import wait_for


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with the user's own cache; both of its rules share a JVM."""
    with running_world(kafka, tmp_path_factory.mktemp("shared"), "shared") as world:
        for detector in (world.one, world.two):
            write_quick_tests(world.source(detector))
            declaration = world.source(detector) / "pyproject.toml"
            declaration.write_text(declaration.read_text("utf-8") + 'isolation = "shared"\n', "utf-8")
        yield world


@contextmanager
def traffic(world: World, ids: set[str]) -> Iterator[None]:
    """Events that both rules alert on, ten times a second, for the length of the block; `ids` are theirs."""
    with every(0.1, lambda: ids.update(world.large(2)), "events"):
        yield


def hosts(world: World) -> list[HostProcess]:
    return [host for host in host_processes(world.jobs / HOSTS) if host.alive()]


def host_of(world: World, detector: str) -> str:
    """The host of its live job, once the one that it relieved has ended."""
    generation = world.settled(detector).generation
    [host] = [
        job.record.host for job in world.running(detector) if (job.status() or job.record).generation == generation
    ]
    return host


def test_detectors_share_a_jvm_and_no_event_is_lost_or_doubled_whatever_ends_or_moves(world: World) -> None:
    one, two, ids = world.one, world.two, set[str]()
    for detector in (one, two):
        assert f"{detector} r1 is live" in world.lozenge("deploy", detector)
    first, other = world.pid(one), world.settled(two)
    [host] = hosts(world)
    assert host_of(world, one) == host_of(world, two) == host.name

    with traffic(world, ids):
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: (live := world.live(one)) is not None and live.pid != first, "the killed job again")
        same = world.settled(two)
        assert (same.pid, same.generation) == (other.pid, other.generation)
        assert host_of(world, one) == host.name

        address = published(host.folder)
        assert address is not None
        os.kill(address.jvm_pid, signal.SIGKILL)
        wait_for(
            lambda: all((live := world.live(each)) is not None and live.pid != other.pid for each in (one, two)),
            "both jobs again",
        )
    assert host.name not in (host_of(world, one), host_of(world, two))
    for detector in (one, two):
        world.assert_each_once(detector, ids)
        assert "its Spark host" in world.lozenge("history", detector, "-o", "json")

    wait_for(lambda: not host.folder.exists(), "the end of its log")
    assert f"{one}-1 has a gateway" in world.lozenge("logs", "spark-host", "-n", "1000")

    with traffic(world, ids):
        assert f"{two} r1 is live" in world.lozenge("set", two, "--isolation", "own")
        assert host_of(world, two) == ""
        assert f"{two} r1 is live" in world.lozenge("set", two, "--isolation", "shared")
        assert host_of(world, two)
    for detector in (one, two):
        world.assert_each_once(detector, ids)
