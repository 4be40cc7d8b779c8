"""The hosts of a folder, as processes that start as real ones but have no Spark."""

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from lozenge.errors import SparkGone
from lozenge.host.address import FILE, seconds_unattended
from lozenge_deploy.hosts.host_pool import HostPool
from lozenge_deploy.hosts.host_process import IDLE_SECONDS, HostProcess, host_logs, host_processes
from lozenge_deploy.hosts.placement import Limits, Need
from lozenge_deploy.hosts.start_failures import RETRY_SECONDS
from lozenge_deploy.supervision.job_process import StartRecord
from tests.waiting import until

FAKE = Path(__file__).with_name("fake_python.py")
LIMITS = Limits(capacity=4, spare_from=100)


class Hosts:
    """A pool on a clock of its own, with the jobs that run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1_000_000.0
        folder.mkdir()
        self.python = folder.parent / "python"
        self.python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.behave("ready")
        self.jobs: list[StartRecord] = []
        self.pools: list[HostPool] = []
        self.pool = self.new_pool()

    def new_pool(self, limits: Limits = LIMITS, first: str | None = None) -> HostPool:
        environment = os.environ | {"PYTHONPATH": ""}
        self.pool = HostPool(self.folder, environment, limits=limits, clock=lambda: self.now)
        if first is not None:
            self.pool.first = self.python, first
        self.pools.append(self.pool)
        return self.pool

    def behave(self, how: str) -> None:
        (self.folder / "behaviour").write_text(how)

    def tick(self, seconds: float = 2.0) -> None:
        self.now += seconds
        self.pool.tick(self.jobs)

    def run(self, detector: str, fingerprint: str = "f", weight: int = 1) -> str:
        """Starts a job of a detector; the name of its host."""
        need = Need(detector, fingerprint, weight)
        until(lambda: self.pool.has_room(need, self.python))
        host = self.pool.take(need).name
        self.jobs.append(
            StartRecord(
                detector=detector,
                release="r1",
                process=[],
                generation=1,
                state="keep",
                memory_mb=1,
                pid=1,
                created=1.0,
                started_at=self.now,
                spark_host=host,
                weight=weight,
            )
        )
        self.tick()
        return host

    def stop(self, detector: str) -> None:
        self.jobs = [job for job in self.jobs if job.detector != detector]

    def process(self, name: str) -> HostProcess:
        return HostProcess(self.folder / name)

    def kill(self, name: str) -> None:
        process = self.process(name)
        process.kill()
        until(lambda: self.pool.has_ended(name))

    def running(self) -> set[str]:
        return {found.name for found in host_processes(self.folder) if found.alive()}


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    found = Hosts(tmp_path / "hosts")
    yield found
    for process in host_processes(found.folder):
        process.kill()
    until(lambda: not found.running())
    for pool in found.pools:  # each reaps what it started
        found.now += LIMITS.start_seconds
        pool.tick(found.jobs)


def test_detectors_share_one_host_until_it_is_full(hosts: Hosts) -> None:
    assert [hosts.run(name) for name in "abcde"] == ["h1", "h1", "h1", "h1", "h2"]


def test_another_version_has_another_host(hosts: Hosts) -> None:
    assert (hosts.run("a"), hosts.run("b", "g"), hosts.run("c", "g")) == ("h1", "h2", "h2")


def test_one_host_is_started_for_many_that_wait(hosts: Hosts) -> None:
    hosts.behave("slow")
    for name in "abc":
        assert not hosts.pool.has_room(Need(name, "f"), hosts.python)
    assert hosts.running() == {"h1"}


def test_a_host_ends_once_nothing_has_run_there_for_a_while(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.stop("a")
    hosts.tick()
    assert not hosts.pool.draining()
    hosts.tick(LIMITS.idle_seconds + 1)
    until(lambda: not hosts.running())
    hosts.tick()
    assert host_processes(hosts.folder) == []


def test_the_first_detector_finds_a_host_that_waits_for_it(hosts: Hosts) -> None:
    hosts.new_pool(Limits(spare_from=100, spare_free_mb=0), first="f")
    hosts.tick()
    hosts.tick(LIMITS.idle_seconds + 1)
    assert hosts.running() == {"h1"}
    assert hosts.run("a") == "h1"
    hosts.tick()
    assert hosts.running() == {"h1"}


def test_a_host_without_a_detector_is_attended_to_as_long_as_the_agent_runs(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.stop("a")
    folder = hosts.process("h1").folder
    os.utime(folder / FILE, (1.0, 1.0))
    assert seconds_unattended(folder) > IDLE_SECONDS
    hosts.tick()
    assert seconds_unattended(folder) < IDLE_SECONDS


def test_no_host_waits_where_detectors_have_jvms_of_their_own(hosts: Hosts) -> None:
    hosts.new_pool(Limits(spare_from=100, spare_free_mb=0), first="f")
    hosts.tick()
    until(lambda: hosts.process("h1").ready())
    hosts.run("a")
    hosts.jobs = [msgspec.structs.replace(job, spark_host="") for job in hosts.jobs]
    hosts.tick(LIMITS.idle_seconds + 1)
    hosts.tick(LIMITS.idle_seconds + 1)
    until(lambda: not hosts.running())


def test_a_host_that_ended_while_no_agent_ran_is_no_failure(hosts: Hosts) -> None:
    hosts.run("a")
    process = hosts.process("h1")
    process.terminate()
    until(lambda: not process.alive())
    hosts.jobs = []
    hosts.new_pool()
    hosts.tick()
    with pytest.raises(SparkGone, match="none is ready"):
        hosts.pool.take(Need("a", "f"))
    assert host_processes(hosts.folder) == []
    assert hosts.run("a") == "h2"


def test_after_the_death_of_a_host_its_detectors_stay_together_and_after_another_one_are_parted(hosts: Hosts) -> None:
    assert {hosts.run(name) for name in "abcd"} == {"h1"}
    hosts.kill("h1")
    assert hosts.pool.neighbours_at_end("h1") == 3
    hosts.jobs = []
    hosts.tick()
    assert hosts.pool.neighbours_at_end("h1") == 3
    assert [hosts.run(name) for name in "abcd"] == ["h2"] * 4
    hosts.kill("h2")
    hosts.jobs = []
    hosts.tick()
    assert sorted(hosts.run(name) for name in "abcd") == ["h3", "h3", "h4", "h4"]
    hosts.kill("h3")
    hosts.stop("a")
    hosts.stop("b")
    hosts.tick()
    assert [hosts.run(name) for name in "ab"] == ["h5", "h6"]
    hosts.kill("h5")
    hosts.tick()
    assert hosts.pool.neighbours_at_end("h5") == 0


def test_the_suspicion_ends(hosts: Hosts) -> None:
    for host in ("h1", "h2"):
        assert hosts.run("a") == hosts.run("b") == host
        hosts.kill(host)
        hosts.jobs = []
        hosts.tick()
    hosts.tick(LIMITS.suspect_seconds + 1)
    assert hosts.run("a") == hosts.run("b") == "h3"


def test_another_pool_finds_the_hosts_and_continues_their_numbers(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.new_pool()
    hosts.tick()
    assert not hosts.pool.has_ended("h1")
    assert hosts.run("b") == "h1"
    assert hosts.run("c", "g") == "h2"


def test_a_pool_that_was_made_before_finds_the_hosts_of_another_one_later(hosts: Hosts) -> None:
    follower = hosts.pool
    hosts.new_pool()
    hosts.run("a")
    assert follower.has_ended("h1")
    follower.adopt()
    assert not follower.has_ended("h1")
    hosts.pool = follower
    assert (hosts.run("b"), hosts.run("c", "g")) == ("h1", "h2")


def test_a_host_that_ended_without_a_pool_counts_as_ended(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.kill("h1")
    pool = hosts.new_pool()
    assert pool.has_ended("h1")
    assert pool.has_ended("h77")


def test_the_log_of_a_host_that_ended_stays_and_its_number_is_used_once(hosts: Hosts) -> None:
    hosts.run("a")
    log = hosts.process("h1").log
    assert host_logs(hosts.folder) == {log: False}
    hosts.kill("h1")
    hosts.jobs = []
    hosts.tick()
    assert host_logs(hosts.folder) == {log: True}
    assert [file.name for file in log.parent.iterdir()] == ["host.log"]
    hosts.new_pool()
    assert hosts.run("a") == "h2"


def test_an_old_host_drains_and_ends_with_its_last_detector(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.now += LIMITS.age_seconds
    hosts.tick()
    assert list(hosts.pool.draining()) == ["h1"]
    assert hosts.run("a") == "h2"
    hosts.jobs = [job for job in hosts.jobs if job.spark_host == "h2"]
    hosts.tick()
    until(lambda: hosts.running() == {"h2"})


def test_a_host_that_does_not_start_is_named_and_tried_again_later(hosts: Hosts) -> None:
    hosts.behave("dead")
    need = Need("a", "f")
    assert not hosts.pool.has_room(need, hosts.python)
    until(lambda: hosts.pool.has_ended("h1"))
    hosts.tick()
    assert hosts.pool.has_room(need, hosts.python)  # so that the reason is reported
    with pytest.raises(SparkGone, match="no memory for a heap"):
        hosts.pool.take(need)
    assert hosts.running() == set()
    hosts.behave("ready")
    hosts.tick(RETRY_SECONDS)
    assert hosts.run("a") == "h2"


def test_hosts_that_do_not_start_are_tried_less_and_less_often(hosts: Hosts) -> None:
    need = Need("a", "f")
    hosts.behave("dead")
    for number, pause in enumerate((RETRY_SECONDS, 2 * RETRY_SECONDS, 4 * RETRY_SECONDS), start=1):
        assert not hosts.pool.has_room(need, hosts.python)
        until(partial(hosts.pool.has_ended, f"h{number}"))
        hosts.tick()
        hosts.tick(pause - 2)
        assert hosts.pool.has_room(need, hosts.python)  # the reason is reported, and no host is started
        hosts.tick(2)
    hosts.behave("ready")
    assert hosts.run("a") == "h4"
    hosts.behave("dead")
    hosts.kill("h4")
    hosts.stop("a")
    hosts.tick()
    assert not hosts.pool.has_room(need, hosts.python)
    until(lambda: hosts.pool.has_ended("h5"))
    hosts.tick()
    hosts.behave("ready")
    hosts.tick(RETRY_SECONDS)
    assert hosts.run("a") == "h6"


def test_a_python_that_does_not_exist_is_named(hosts: Hosts) -> None:
    missing = hosts.folder / "no-python"
    need = Need("a", "f")
    assert not hosts.pool.has_room(need, missing)
    assert hosts.pool.has_room(need, missing) or hosts.process("h1")
    until(lambda: not hosts.running())
    hosts.tick()
    assert hosts.pool.has_room(need, missing)
    with pytest.raises(SparkGone, match="no-python"):
        hosts.pool.take(need)


def test_a_host_that_never_listens_is_killed_and_its_log_is_not_blamed(hosts: Hosts) -> None:
    hosts.behave("slow")
    assert not hosts.pool.has_room(Need("a", "f"), hosts.python)
    until(lambda: hosts.running() == {"h1"})
    hosts.tick(LIMITS.start_seconds + 10**9)
    until(lambda: hosts.pool.has_ended("h1"))
    hosts.tick()
    with pytest.raises(SparkGone, match="h1 was killed, since it did not listen after 300 s"):
        hosts.pool.take(Need("a", "f"))


def test_all_hosts_that_are_needed_start_together(hosts: Hosts) -> None:
    for host in ("h1", "h2"):
        assert [hosts.run(name) for name in "abcd"] == [host] * 4
        hosts.kill(host)
        hosts.jobs = []
        hosts.tick()
    waiting = [Need(name, "f") for name in "abcd"]
    assert [hosts.pool.has_room(need, hosts.python) for need in waiting] == [False] * 4
    assert hosts.running() == {"h3", "h4"}, "two of four may be neighbours"
    assert sorted(hosts.run(name) for name in "abcd") == ["h3", "h3", "h4", "h4"]


def test_who_awaits_a_host_when_another_one_ends_is_distributed_again(hosts: Hosts) -> None:
    waiting = [Need(name, "f") for name in "abcd"]
    assert [hosts.run(need.detector) for need in waiting] == ["h1"] * 4
    hosts.kill("h1")
    hosts.jobs = []
    hosts.tick()
    assert [hosts.run(need.detector) for need in waiting] == ["h2"] * 4
    hosts.behave("slow")
    hosts.kill("h2")
    assert [hosts.pool.has_room(need, hosts.python) for need in waiting] == [False] * 4  # all are to share it
    hosts.jobs = []
    hosts.tick()
    assert [hosts.pool.has_room(need, hosts.python) for need in waiting] == [False] * 4
    assert hosts.running() == {"h3", "h4"}


def test_a_spare_is_kept_once_enough_share(hosts: Hosts) -> None:
    hosts.new_pool(Limits(capacity=4, spare_from=2, spare_free_mb=0))
    hosts.run("a")
    assert hosts.running() == {"h1"}
    hosts.run("b")
    assert hosts.running() == {"h1"}, "it takes no cores from a detector that starts"
    hosts.tick(LIMITS.spare_after_seconds)
    until(lambda: hosts.running() == {"h1", "h2"})
    hosts.kill("h1")
    hosts.jobs = []
    assert hosts.run("a") == "h2"


def test_a_spare_that_was_idle_for_long_takes_the_detectors_of_a_host_that_has_ended(hosts: Hosts) -> None:
    hosts.new_pool(Limits(capacity=4, spare_from=2, spare_free_mb=0))
    hosts.run("a")
    hosts.run("b")
    hosts.tick(LIMITS.spare_after_seconds)
    until(lambda: hosts.process("h2").ready())
    hosts.tick(10 * LIMITS.idle_seconds)
    hosts.kill("h1")
    hosts.tick()  # the processes of its detectors have not ended yet
    hosts.jobs = []
    hosts.tick()
    assert (hosts.run("a"), hosts.run("b")) == ("h2", "h2")
    hosts.stop("a")
    hosts.stop("b")
    hosts.tick(2 * LIMITS.idle_seconds)
    until(lambda: not hosts.running())


def test_the_next_pool_keeps_a_spare_too(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.new_pool(Limits(capacity=4, spare_from=1, spare_free_mb=0))
    hosts.tick()
    until(lambda: hosts.running() == {"h1", "h2"})


def test_the_hosts_that_nothing_runs_on_end_with_the_pool(hosts: Hosts) -> None:
    hosts.run("a")
    hosts.run("b", "g")
    hosts.stop("b")
    hosts.tick()
    hosts.pool.close()
    until(lambda: hosts.running() == {"h1"})
