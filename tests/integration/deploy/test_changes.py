"""Changes of one detector, which another one does not notice; its jobs run without Spark."""

import json
import os
import shutil
import signal

import psutil
import pytest

from tests.integration.deploy.worlds import World
from tests.integration.harness import STOPS_IN_A_TRANSACTION, wait_for

LIVE_ONLY = '\nimport os\n\nif os.environ.get("LOZENGE_JOB_FOLDER"):\n    {}\n'
"""Code that does its harm in a job that the agent runs, and nowhere else."""


@pytest.fixture(autouse=True)
def _live(world: World) -> None:
    """Each test begins with both detectors live, and leaves them so in their first release."""
    world.ensure_live(world.one, world.two)


def test_a_setting_reaches_the_running_process_and_a_wrong_one_is_refused(world: World) -> None:
    before, ids = world.pid(world.one), world.large(20)
    assert "live" in world.lozenge("set", world.one, "limit=600")
    ids |= world.large(20)
    said = world.lozenge("set", world.one, "limit=much", code=2)
    assert "limit: it must be a number" in said
    world.assert_each_once(world.one, ids)
    assert world.pid(world.one) == before
    assert len({a["settings_digest"] for a in world.alerts(world.one, ids)}) == 2
    world.lozenge("set", world.one, "limit=")


def test_a_release_and_its_rollback_are_another_process_and_the_other_detector_does_not_notice(world: World) -> None:
    before, other, ids = world.pid(world.one), world.settled(world.two), world.large(20)
    with world.edited(world.one, "# another version\n"):
        assert "is live" in world.deploy(world.one)
    ids |= world.large(20)
    assert world.pid(world.one) != before
    assert f"{world.one} r1 is live" in world.lozenge("rollback", world.one, "--to", "r1", "-m", "trying")
    ids |= world.large(20)
    for detector in (world.one, world.two):
        world.assert_each_once(detector, ids)
    same = world.settled(world.two)
    assert (same.pid, same.generation, same.since) == (other.pid, other.generation, other.since)
    lines = world.lozenge("history", world.one)
    assert all(word in lines for word in ("deploy", "rollback", "live", "trying"))


@pytest.mark.parametrize(
    ("harm", "words"),
    [("raise RuntimeError('not today')", "not today"), ("os._exit(7)", "exited before it was live")],
    ids=["raises at import", "exits"],
)
def test_a_release_that_cannot_run_is_refused_and_the_one_before_does_not_notice(
    world: World, harm: str, words: str
) -> None:
    before = world.pid(world.two)
    with world.edited(world.two, LIVE_ONLY.format(harm)):
        said = world.deploy(world.two, code=1)
    assert words in said
    assert "r1 still runs" in said
    assert world.pid(world.two) == before
    ids = world.large(10)
    world.assert_each_once(world.two, ids)
    assert {a["release"] for a in world.alerts(world.two, ids)} == {"r1"}


def test_a_detector_that_is_stopped_inside_its_transaction_holds_nobody_up(world: World) -> None:
    stop = world.folder / "stop-now"
    with world.edited(world.two, STOPS_IN_A_TRANSACTION.format(file=str(stop))):
        world.deploy(world.two)
    pid = world.pid(world.two)
    stop.touch()
    ids = world.large(10)
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "the stop inside the transaction")
    ids |= world.large(10)
    world.assert_each_once(world.one, ids)
    assert not world.alerts(world.two, ids)
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    os.kill(pid, signal.SIGCONT)
    world.assert_each_once(world.two, ids)
    assert "r1 is live" in world.lozenge("rollback", world.two, "--to", "r1")


def test_pause_resume_and_retire_keep_the_offsets(world: World) -> None:
    [answer] = json.loads(world.lozenge("pause", world.one, "--dry-run", "-o", "json"))
    assert answer["changes"][0] == {"field": "goal", "current": "running", "new": "paused"}
    assert len(world.running(world.one)) == 1
    world.lozenge("pause", world.one)
    assert "no change (already paused)" in world.lozenge("pause", world.one)
    assert world.running(world.one) == []
    ids = world.large(15)
    assert "live" in world.lozenge("resume", world.one)
    world.assert_each_once(world.one, ids)
    world.lozenge("retire", world.one)
    assert world.running(world.one) == []
    source = world.source(world.one)
    shutil.move(source, aside := world.folder / "aside")
    assert "live" in world.lozenge("resume", world.one)
    shutil.move(aside, source)
