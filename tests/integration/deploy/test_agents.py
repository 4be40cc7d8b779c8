"""Agents that are killed, and two of them at once; their jobs run without Spark."""

import os
import signal
import time

import pytest

from tests.integration.deploy.worlds import World
from tests.integration.harness import wait_for


@pytest.fixture(autouse=True)
def _live(world: World) -> None:
    world.ensure_live(world.one, world.two)


def test_killed_jobs_come_back_and_killed_agents_leave_the_jobs_running(world: World) -> None:
    agent, one, two = world.agents[-1], world.pid(world.one), world.pid(world.two)
    agent.kill()
    agent.wait()
    ids = world.large(10)
    world.assert_each_once(world.one, ids)
    assert (world.pid(world.one), world.pid(world.two)) == (one, two)
    os.kill(one, signal.SIGKILL)
    world.start_agent()
    wait_for(lambda: (live := world.live(world.one)) is not None and live.pid != one, "the killed job again")
    assert world.pid(world.two) == two
    ids |= world.large(10)
    for detector in (world.one, world.two):
        world.assert_each_once(detector, ids)


def test_of_two_agents_one_is_the_leader_and_no_detector_runs_twice(world: World) -> None:
    first, number = world.agents[-1], len(world.agents) - 1
    pids = {name: world.pid(name) for name in (world.one, world.two)}
    second = world.start_agent()
    first.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: "adopted" in world.log(number + 1).read_text(), "the second agent to be the leader")
        world.lozenge("set", world.two, "--max-batch", "5000")
    finally:
        first.send_signal(signal.SIGCONT)
    wait_for(lambda: "leadership lost" in world.log(number).read_text(), "the first agent to find out")
    time.sleep(1)
    assert {name: world.pid(name) for name in pids} == pids
    wait_for(lambda: all(len(world.running(name)) == 1 for name in pids), "one process for each")
    assert first.poll() is None
    assert second.poll() is None
