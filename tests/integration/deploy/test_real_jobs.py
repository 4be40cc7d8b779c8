"""Deployments from end to end, with all their real parts: the command, the agent, releases, jobs on Spark, a broker.

Both rules share a JVM, as small ones do. Each is still a process, a release and a failure of its own. One moves into a
JVM of its own and back. Their JVM is killed. In the end one is in Real-Time Mode, which has a JVM of its own too.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.avro import Codec
from lozenge.host.address import published
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.periodic import every
from lozenge.protocol.job_status import JobStatus
from lozenge.streams.project import Streams
from lozenge_deploy.hosts.host_process import HOSTS, HostProcess, host_processes
from lozenge_deploy.supervision.job_process import JobProcess
from tests.integration.deploy.sources import write_quick_tests
from tests.integration.deploy.tutorial import Tutorial
from tests.integration.deploy.worlds import OWN_JVM, World, running_world
from tests.integration.harness import alerts, committed, event, send, wait_for, wider_events
from tests.integration.upstream.in_process import run_until
from tests.upstream.samples import as_upstream

REALTIME = 'mode = "realtime"\n'


@contextmanager
def traffic(world: World, ids: set[str]) -> Iterator[None]:
    """Events that both rules alert on, ten times a second, for the length of the block; `ids` are theirs."""
    with every(0.1, lambda: ids.update(world.large(2)), "events"):
        yield


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with the user's own cache, where Spark finds what makes its starts quick; its rules run on Spark."""
    with running_world(kafka, tmp_path_factory.mktemp("real"), "real", first_host=True) as world:
        for detector in (world.one, world.two):
            write_quick_tests(world.source(detector))
            declaration = world.source(detector) / "pyproject.toml"
            declaration.write_text(declaration.read_text("utf-8").replace(OWN_JVM, ""), "utf-8")
        yield world


@pytest.mark.nightly
def test_each_alert_comes_once_whatever_ends_and_wherever_a_rule_runs(world: World) -> None:
    one, two = world.one, world.two
    for detector in (one, two):
        assert f"{detector} r1 is live" in world.lozenge("deploy", detector)
    _a_rule_moves_into_a_jvm_of_its_own_and_back(world, two)
    _a_job_and_the_jvm_of_both_are_killed(world)
    _a_release_in_real_time_mode_replaces_it(world, two)
    _a_field_that_upstream_adds_starts_nothing_again(world, two)
    _a_signal_to_job_and_jvm_ends_it_in_order(world, two)


def test_a_stream_of_ones_own_raises_its_first_alert_as_the_tutorial_says(
    world: World, spark: SparkSession, tmp_path: Path
) -> None:
    tutorial = Tutorial("tutorial-streams.md", tmp_path / "plant", world.kafka)
    topics = world.kafka.topics
    if not any(agent.poll() is None for agent in world.agents):
        world.start_agent()
    said = {}
    for command in tutorial.commands:
        if command.startswith("lozenge deploy"):  # `lozenge up` makes them
            streams = Streams.of(tutorial.folder / "upstream" / "streams")
            ensure_topics(world.kafka, streams.get("readings").topics(topics, ()))
        if command.startswith("lozenge peek"):
            wait_for(lambda: alerts(world.kafka, "overheated"), "the alert")
        said[command] = tutorial.run(command)
        if command.startswith("python"):
            run_until(
                lambda found: found["lozenge_records_total"] == 60,
                *(as_upstream(spark), world.kafka),
                sources=("readings",),
                streams=streams,
                stream="readings",
            )
    assert "3 passed" in said["lozenge stream test readings"]
    assert "overheated r1 is live" in next(text for command, text in said.items() if "deploy overheated" in command)
    [alert] = alerts(world.kafka, "overheated")
    assert (alert["entity"]["id"], alert["evidence"]["values"]["celsius"]) == ("press-0", "95.5")


def _a_rule_moves_into_a_jvm_of_its_own_and_back(world: World, rule: str) -> None:
    ids = set[str]()
    with traffic(world, ids):
        assert f"{rule} r1 is live" in world.lozenge("set", rule, "--isolation", "own")
        alone = world.settled(rule)
        assert _host_of(world, rule) == ""
        assert list((_job_of(world, rule, alone).folder / "tmp").glob("blockmgr-*")), "Spark writes elsewhere"
        assert "live" in world.lozenge("set", rule, "limit=600")
        assert world.pid(rule) == alone.pid
        assert f"{rule} r1 is live" in world.lozenge("set", rule, "--isolation", "shared")
        assert _host_of(world, rule)
    for detector in (world.one, world.two):
        world.assert_each_once(detector, ids)


def _a_job_and_the_jvm_of_both_are_killed(world: World) -> None:
    one, two, ids = world.one, world.two, set[str]()
    first, other = world.pid(one), world.settled(two)
    [host] = _hosts(world)
    assert _host_of(world, one) == _host_of(world, two) == host.name
    forked_by = psutil.Process(first).parent()
    assert forked_by is not None
    assert "lozenge.job.fork_server" in forked_by.cmdline()
    assert f"lozenge job {one} r" in " ".join(psutil.Process(first).cmdline())

    with traffic(world, ids):
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: (live := world.live(one)) is not None and live.pid != first, "the killed job again")
        same = world.settled(two)
        assert (same.pid, same.generation) == (other.pid, other.generation)
        assert _host_of(world, one) == host.name

        address, before = published(host.folder), {each: world.pid(each) for each in (one, two)}
        assert address is not None
        os.kill(address.jvm_pid, signal.SIGKILL)
        wait_for(
            lambda: all((live := world.live(each)) is not None and live.pid != pid for each, pid in before.items()),
            "both jobs again",
        )
    assert host.name not in (_host_of(world, one), _host_of(world, two))
    for detector in (one, two):
        world.assert_each_once(detector, ids)
        assert "its Spark host" in world.lozenge("history", detector, "-o", "json")
    wait_for(lambda: not host.folder.exists(), "the end of its log")
    assert re.search(rf"{one}-\d+ has a gateway", world.lozenge("logs", "spark-host", "-n", "1000"))


def _a_release_in_real_time_mode_replaces_it(world: World, rule: str) -> None:
    declaration, before, ids = world.source(rule) / "pyproject.toml", world.pid(rule), set[str]()
    declaration.write_text(declaration.read_text("utf-8") + REALTIME, "utf-8")
    with traffic(world, ids):
        assert f"{rule} r2 is live" in world.lozenge("deploy", rule)
        assert world.pid(rule) != before
        assert _host_of(world, rule) == ""
        assert "offsets (committed: " in world.lozenge("status", rule)
        seen = world.large(1)
        wait_for(lambda: world.alerts(rule, seen), "an alert in Real-Time Mode")
    ids |= seen
    world.assert_each_once(rule, ids)
    assert {a["release"] for a in world.alerts(rule, ids)} == {"r1", "r2"}


def _a_field_that_upstream_adds_starts_nothing_again(world: World, rule: str) -> None:
    before, wider = world.pid(rule), wider_events()
    announce(world.kafka, [wider])
    sent = [event(8 * 10**9 + n, f"card_{n % 8}", "900.00", wallet="w") for n in range(20)]
    send(world.kafka, sent, Codec(wider))
    world.assert_each_once(rule, {e["event_id"] for e in sent} | world.large(10))
    assert world.pid(rule) == before
    assert not committed(world.kafka, world.kafka.topics.dead_letters(rule))


def _a_signal_to_job_and_jvm_ends_it_in_order(world: World, rule: str) -> None:
    running = _job_of(world, rule, world.settled(rule))
    log = running.folder / "log"
    before = len(log.read_text("utf-8"))
    world.stop_agents()
    job = psutil.Process(world.pid(rule))
    for process in [*job.children(recursive=True), job]:
        process.terminate()  # as a signal to the container does, which reaches the JVM too
    wait_for(lambda: not running.alive(), "the end of the job")
    assert running.exit_code() == 0
    assert "Traceback" not in log.read_text("utf-8")[before:]


def _hosts(world: World) -> list[HostProcess]:
    return [host for host in host_processes(world.jobs / HOSTS) if host.alive()]


def _job_of(world: World, rule: str, live: JobStatus) -> JobProcess:
    """Its process of the generation that is live."""
    [job] = [job for job in world.running(rule) if (job.status() or job.record).generation == live.generation]
    return job


def _host_of(world: World, rule: str) -> str:
    """The host of its live job, once the one that it replaced has ended; "" for a JVM of its own."""
    return _job_of(world, rule, world.settled(rule)).record.spark_host
