"""Hot deployment with all its real parts: the command, the agent, releases, jobs, broker."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from lozenge.contracts import topics
from lozenge.contracts.avro import Codec
from lozenge.contracts.record import places_of
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.periodic import every
from lozenge.protocol.job_status import JobStatus, Phase, read_job_status
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.supervision.job_process import Instance, instances
from tests.integration.conftest import Broker
from tests.integration.harness import (
    STOPS_IN_A_TRANSACTION,
    alerts,
    committed,
    event,
    group_offsets,
    send,
    wait_for,
    wider_events,
)

pytestmark = pytest.mark.integration

LIVE_ONLY = 'import os\n\nif os.environ.get("LOZENGE_JOB_FOLDER"):\n    {}\n'
"""Code that does its harm in a job that the agent runs, and none in a test."""


class World:
    """Agents over one folder of jobs, and a checkout with the detectors `one` and `two`, which are rules."""

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self.kafka, self.folder, self.jobs = kafka, folder, folder / "jobs"
        self._environment = os.environ | {"LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap, "NO_COLOR": "1"}
        self.agents: list[subprocess.Popen[bytes]] = []
        (folder / "pyproject.toml").touch()
        (folder / "detectors").mkdir()
        for name in ("one", "two"):
            write(folder / "detectors", name, "rule", "tests")

    def lozenge(self, *arguments: str, code: int = 0) -> str:
        """What the command says; it must end with `code`."""
        command = [sys.executable, "-m", "lozenge_deploy.cli", *arguments]
        run = subprocess.run(
            command, env=self._environment, cwd=self.folder, capture_output=True, text=True, timeout=900
        )
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    def start_agent(self) -> "subprocess.Popen[bytes]":
        """One more agent."""
        with (self.folder / f"agent-{len(self.agents)}.log").open("wb") as log:
            command = [sys.executable, "-m", "lozenge_deploy.agent", str(self.jobs)]
            self.agents.append(subprocess.Popen(command, env=self._environment, stdout=log, stderr=log))
        return self.agents[-1]

    def running(self, detector: str) -> list[Instance]:
        """Its instances that have a process."""
        return [instance for instance in instances(self.jobs / detector) if instance.alive()]

    def live(self, detector: str) -> JobStatus | None:
        """The report of its one live job; None while there is none or more than one."""
        reports = [read_job_status(instance.folder) for instance in self.running(detector)]
        live = [report for report in reports if report is not None and report.phase is Phase.LIVE]
        return live[0] if len(live) == 1 else None

    def pid(self, detector: str) -> int:
        """The process of its live job, once the one that it relieved has ended."""
        return self.settled(detector).pid

    def settled(self, detector: str) -> JobStatus:
        """The report of its live job, once that is the only one."""
        seen: list[JobStatus] = []

        def only() -> bool:
            seen.extend(filter(None, [self.live(detector)]))
            return bool(seen)

        wait_for(only, f"one live job of {detector}")
        return seen[0]

    def append(self, detector: str, code: str) -> None:
        """Changes the detector's module."""
        module = self.folder / "detectors" / detector / f"{detector}.py"
        module.write_text(module.read_text("utf-8") + code, "utf-8")

    def end(self) -> None:
        """Leaves no process."""
        for agent in self.agents:
            if agent.poll() is None:  # else a test has killed it
                agent.terminate()
                assert agent.wait(60) == 0
        for folder in self.jobs.iterdir():
            for instance in instances(folder):
                instance.kill()
                wait_for(partial(self._gone, instance), "the end of a job")

    @staticmethod
    def _gone(instance: Instance) -> bool:
        return not instance.alive()


@pytest.fixture(scope="module")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    kafka = KafkaSettings(bootstrap=broker.bootstrap)
    ensure_topics(kafka, topics.platform_topics())
    world = World(kafka, tmp_path_factory.mktemp("agent"))
    try:
        world.start_agent()
        for name in ("one", "two"):
            said = world.lozenge("deploy", name)
            assert f"{name} r1 is live" in said
        yield world
    finally:
        world.end()


@pytest.fixture(autouse=True)
def _history(world: World) -> Iterator[None]:
    """What a test that fails is told with."""
    yield
    for name in ("one", "two"):
        print(world.lozenge("history", name))


_sent = iter(range(10**9, 2 * 10**9))


def large(world: World, count: int) -> set[str]:
    """Sends so many events that both rules alert on; returns their ids."""
    sent = [event(next(_sent), f"card_{n % 8}", "900.00") for n in range(count)]
    send(world.kafka, sent)
    return {e["event_id"] for e in sent}


def told(world: World, detector: str, ids: set[str]) -> list[dict[str, Any]]:
    """The alerts of `detector` on these events."""
    return [a for a in alerts(world.kafka, detector) if a["evidence"]["event_ids"][0] in ids]


def assert_each_once(world: World, detector: str, ids: set[str]) -> None:
    """Every one of these events has its alert of `detector`, and only one."""
    wait_for(lambda: len(told(world, detector, ids)) >= len(ids), f"the alerts of {detector}")
    assert Counter(a["evidence"]["event_ids"][0] for a in told(world, detector, ids)) == Counter(ids)


def test_one_detector_is_set_updated_and_rolled_back_while_the_other_does_not_notice(world: World) -> None:
    before, other = world.pid("one"), world.settled("two")
    ids = large(world, 20)
    assert "live" in world.lozenge("set", "one", "limit=600")
    assert world.pid("one") == before
    ids |= large(world, 20)
    said = world.lozenge("set", "one", "limit=much", code=2)
    assert "limit: Input should be a valid decimal" in said
    world.append("one", "# another version\n")
    assert "one r2 is live" in world.lozenge("deploy", "one")
    ids |= large(world, 20)
    assert world.pid("one") != before
    assert "one r1 is live" in world.lozenge("rollback", "one", "-m", "trying")
    ids |= large(world, 20)
    for detector in ("one", "two"):
        assert_each_once(world, detector, ids)
    assert {a["release"] for a in told(world, "one", ids)} == {"r1", "r2"}
    same = world.settled("two")
    assert (same.pid, same.generation, same.since) == (other.pid, other.generation, other.since)
    assert all(list((i.folder / "tmp").glob("blockmgr-*")) for i in world.running("two")), "Spark writes elsewhere"
    lines = world.lozenge("history", "one")
    assert all(word in lines for word in ("deploy", "rollback", "set", "live", "trying"))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("raise RuntimeError('not today')", "not today"),
        ("os._exit(7)", "ended before it was live"),
        ("detector = Detector(lambda events, s, t: events.select(F.raise_error(F.lit('no'))), settings=Two)", "no"),
    ],
    ids=["raises at import", "exits", "throws on every event"],
)
def test_a_release_that_cannot_run_is_refused_and_the_one_before_does_not_notice(
    world: World, harm: str, words: str
) -> None:
    module = world.folder / "detectors" / "two" / "two.py"
    good, before = module.read_text("utf-8"), world.pid("two")
    try:
        world.append("two", LIVE_ONLY.format(harm))
        large(world, 20)
        said = world.lozenge("deploy", "two", code=1)
        assert words in said
        assert "r1 runs on" in said
    finally:
        module.write_text(good, "utf-8")
    assert world.pid("two") == before
    ids = large(world, 10)
    wait_for(lambda: len(told(world, "two", ids)) == 10, "alerts of the release before")
    assert {a["release"] for a in told(world, "two", ids)} == {"r1"}


def test_upstream_gains_a_field_and_no_detector_starts_again(world: World) -> None:
    pids = {name: world.pid(name) for name in ("one", "two")}
    wider = wider_events()
    announce(world.kafka, [wider])
    sent = [event(next(_sent), f"card_{n % 8}", "900.00", wallet="w") for n in range(20)]
    send(world.kafka, sent, Codec(wider))
    ids = {e["event_id"] for e in sent} | large(world, 10)
    for name in pids:
        assert_each_once(world, name, ids)
        assert world.pid(name) == pids[name]
        assert not committed(world.kafka, topics.dead_letters(name))


def test_the_partitions_of_a_killed_instance_go_to_the_other_one(world: World) -> None:
    ids = large(world, 20)
    assert "two r1 is live" in world.lozenge("scale", "two", "--instances", "2")
    second = world.settled("two.1")

    def both_judge() -> bool:
        ids.update(large(world, 8))  # those that come before it has got its partitions are the first one's
        return bool(_records(world, "two") and _records(world, "two.1"))

    wait_for(both_judge, "records of both")
    os.killpg(os.getpgid(second.pid), signal.SIGKILL)
    ids |= large(world, 40)
    assert_each_once(world, "two", ids)
    wait_for(lambda: (now := world.live("two.1")) and now.pid != second.pid, "another second instance")
    assert "two r1 is live" in world.lozenge("scale", "two", "--instances", "1")
    assert not world.running("two.1")
    ids |= large(world, 20)
    assert_each_once(world, "two", ids)
    assert "no gaps" in world.lozenge("fill", "two", "--dry-run")


def _records(world: World, instance: str) -> int | None:
    report = world.live(instance)
    return None if report is None else report.records


def test_a_detector_that_is_stopped_inside_its_transaction_holds_nobody_up(world: World) -> None:
    module = world.folder / "detectors" / "two" / "two.py"
    good, stop = module.read_text("utf-8"), world.folder / "stop-now"
    try:
        world.append("two", STOPS_IN_A_TRANSACTION.format(file=str(stop)))
        world.lozenge("deploy", "two")
    finally:
        module.write_text(good, "utf-8")
    pid = world.pid("two")
    stop.touch()
    ids = large(world, 10)
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "the stop inside the transaction")
    ids |= large(world, 10)
    assert_each_once(world, "one", ids)
    assert not told(world, "two", ids)
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    os.kill(pid, signal.SIGCONT)
    assert_each_once(world, "two", ids)
    assert "two r1 is live" in world.lozenge("rollback", "two")


def test_a_rule_enters_real_time_mode_is_updated_in_it_and_leaves_it_with_each_alert_once(world: World) -> None:
    declaration = world.folder / "detectors" / "two" / "pyproject.toml"
    batches, ids = declaration.read_text("utf-8"), set[str]()
    with under_way(world, ids):
        declaration.write_text(batches + 'mode = "realtime"\n', "utf-8")
        world.lozenge("deploy", "two")
        world.append("two", "# another version\n")
        world.lozenge("deploy", "two")
        assert "offsets behind, by its last commit" in world.lozenge("status", "two")
        os.killpg(os.getpgid(world.pid("two")), signal.SIGKILL)
        killed = large(world, 1)
        wait_for(lambda: told(world, "two", killed), "an alert after the kill")
        declaration.write_text(batches, "utf-8")
        assert "two r1 is live" in world.lozenge("rollback", "two", "--to", "r1")
    assert_each_once(world, "two", ids | killed)
    assert len({a["release"] for a in told(world, "two", ids)}) == 3


def under_way(world: World, ids: set[str]) -> AbstractContextManager[None]:
    """Events that both rules alert on, ten times a second, while the block runs; `ids` are theirs."""
    return every(0.1, lambda: ids.update(large(world, 2)), "events")


def test_killed_jobs_come_back_and_killed_agents_leave_the_jobs_running(world: World) -> None:
    agent, one, two = world.agents[-1], world.pid("one"), world.pid("two")
    agent.kill()
    agent.wait()
    ids = large(world, 10)
    wait_for(lambda: len(told(world, "one", ids)) == 10, "alerts without an agent")
    assert (world.pid("one"), world.pid("two")) == (one, two)
    os.kill(one, signal.SIGKILL)
    world.start_agent()
    wait_for(lambda: (live := world.live("one")) is not None and live.pid != one, "the killed job again")
    assert world.pid("two") == two
    ids |= large(world, 10)
    wait_for(lambda: len(told(world, "one", ids)) == 20, "all alerts")
    assert len(told(world, "two", ids)) == 20


def test_of_two_agents_one_leads_and_no_detector_runs_twice(world: World) -> None:
    first = world.agents[-1]
    pids = {name: world.pid(name) for name in ("one", "two")}
    second = world.start_agent()
    first.send_signal(signal.SIGSTOP)
    try:
        log = world.folder / f"agent-{len(world.agents) - 1}.log"
        wait_for(lambda: "adopted" in log.read_text(), "the second agent to lead")
        world.lozenge("set", "two", "--max-batch", "5000")
    finally:
        first.send_signal(signal.SIGCONT)
    before = world.folder / f"agent-{world.agents.index(first)}.log"
    wait_for(lambda: "leads no longer" in before.read_text(), "the first agent to find out")
    time.sleep(3)
    assert {name: world.pid(name) for name in pids} == pids
    wait_for(lambda: all(len(world.running(name)) == 1 for name in pids), "one process for each")
    assert first.poll() is None
    assert second.poll() is None


def test_pause_resume_and_retire_keep_the_offsets(world: World) -> None:
    [answer] = json.loads(world.lozenge("pause", "one", "--dry-run", "-o", "json"))
    assert answer["changes"][0] == {"what": "goal", "now": "running", "then": "paused"}
    assert len(world.running("one")) == 1
    world.lozenge("pause", "one")
    assert "it is so already" in world.lozenge("pause", "one")
    assert world.running("one") == []
    ids = large(world, 15)
    assert "live" in world.lozenge("resume", "one")
    wait_for(lambda: len(told(world, "one", ids)) == 15, "what came while it was paused")
    world.lozenge("retire", "one")
    assert world.running("one") == []
    shutil.rmtree(world.folder / "detectors" / "one")
    assert "live" in world.lozenge("resume", "one")


def test_moved_offsets_stand_in_history_and_coverage_and_what_they_left_out_is_filled(world: World) -> None:
    other = world.pid("two")
    before = {p: offset for p, (offset, _) in group_offsets(world.kafka, "one").items()}
    world.lozenge("pause", "one")
    left_out = large(world, 20)
    assert "left out" in world.lozenge("offsets", "one", "--latest", "--dry-run")
    assert "behind" in world.lozenge("offsets", "one")
    world.lozenge("offsets", "one", "--latest", "-m", "nobody waits for these")
    assert "is live" in world.lozenge("resume", "one")
    ids = large(world, 20)
    assert_each_once(world, "one", ids)
    assert not told(world, "one", left_out)
    assert "GAP" in world.lozenge("coverage", "one")
    partition = next(p for p, (offset, _) in group_offsets(world.kafka, "one").items() if offset > before[p])
    assert "it lies in a gap" in world.lozenge("coverage", "one", f"{partition}:{before[partition]}")
    assert "raised 20 alerts" in world.lozenge("fill", "one")
    assert_each_once(world, "one", left_out)
    assert "GAP" not in world.lozenge("coverage", "one")

    then = places_of(before.items())
    assert "is live" in world.lozenge("offsets", "one", "--to", then)
    wait_for(lambda: len(told(world, "one", ids)) == 40, "the alerts of one once more")
    assert len({a["alert_id"] for a in told(world, "one", ids)}) == 20
    assert "twice" in world.lozenge("coverage", "one")
    history = world.lozenge("history", "one", "-o", "json")
    assert "nobody waits for these" in history
    assert f"to {then}" in history
    assert "is not between" in world.lozenge("offsets", "one", "--to", "0:999999999", code=2)
    assert "remembers nothing" in world.lozenge("offsets", "one", "--latest", "--state", "fresh", code=2)
    assert world.pid("two") == other
