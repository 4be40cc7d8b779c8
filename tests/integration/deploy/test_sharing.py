"""Instances of one detector under an agent; they share partitions through the broker, and run without Spark."""

import os
import signal

from tests.integration.deploy.worlds import World
from tests.integration.harness import wait_for


def test_the_partitions_of_a_killed_instance_go_to_the_other_one(world: World) -> None:
    world.deploy(world.one)
    first, second = world.one, f"{world.one}.1"
    ids = world.large(20)
    assert f"{first} r1 is live" in world.lozenge("scale", first, "--instances", "2")
    killed = world.settled(second)

    def both_process() -> bool:
        ids.update(world.large(8))  # those that come before it has got its partitions are the first one's
        return all((live := world.live(each)) is not None and live.records for each in (first, second))

    wait_for(both_process, "records of both")
    os.killpg(os.getpgid(killed.pid), signal.SIGKILL)
    ids |= world.large(40)
    world.assert_each_once(first, ids)
    wait_for(lambda: (now := world.live(second)) and now.pid != killed.pid, "another second instance")
    assert f"{first} r1 is live" in world.lozenge("scale", first, "--instances", "1")
    assert not world.running(second)
    ids |= world.large(20)
    world.assert_each_once(first, ids)
    assert "no gaps" in world.lozenge("backfill", first, "--dry-run")
