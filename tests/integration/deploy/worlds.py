"""Agents as processes, over one folder of jobs and a checkout with two rules; the command runs in this process."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobPhase, JobStatus, read_job_status
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.hosts.host_process import HOSTS, host_processes
from lozenge_deploy.supervision.job_process import JobProcess, job_processes
from tests.deploy.command import invoke
from tests.deploy.sparkless_environments import install
from tests.integration.harness import alerts, event, send, wait_for
from tests.streams import AUTH

QUICK_AGENT = """
from lozenge.process.shutdown import end
from lozenge_deploy.agent.__main__ import main
from lozenge_deploy.control.leader_election import LeaseTiming

end(main(LeaseTiming(lease=4.0, renew=1.0), first_host={first_host}))
"""
"""The agent, whose lease another one need not wait for so long."""

OWN_JVM = 'isolation = "own"\n'
"""A line of a declaration: what runs without Spark needs no Spark host."""
_sent = iter(range(10**9, 2 * 10**9))


class World:
    """What one test module deploys: the rules `one` and `two`."""

    def __init__(self, kafka: KafkaSettings, folder: Path, name: str, *, first_host: bool = False) -> None:
        self.kafka, self.folder, self.jobs, self._first_host = kafka, folder, folder / "jobs", first_host
        self.one, self.two = f"{name}_one", f"{name}_two"
        self.agents: list[subprocess.Popen[bytes]] = []
        self._variables = kafka.variables | {"NO_COLOR": "1", "LOZENGE_CACHE_URL": ""}
        (folder / "pyproject.toml").touch()
        (folder / "detectors").mkdir()
        for detector in (self.one, self.two):
            write(folder / "detectors", detector, "rule", "tests", AUTH)
            declaration = self.source(detector) / "pyproject.toml"
            declaration.write_text(declaration.read_text("utf-8") + OWN_JVM, "utf-8")

    def source(self, detector: str) -> Path:
        """The folder of a detector's source."""
        return self.folder / "detectors" / detector

    def lozenge(self, *arguments: str, code: int = 0) -> str:
        """What the command says; it must end with `code`."""
        run = invoke(*arguments, cwd=self.folder, **self._variables)
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    def deploy(self, *detectors: str, code: int = 0) -> str:
        """Deploys detectors as they are now, whose jobs run without Spark; what the command says of the last one."""
        said = ""
        for detector in detectors:
            install(self.source(detector))
            said = self.lozenge("deploy", detector, code=code)
        return said

    def ensure_live(self, *detectors: str) -> None:
        """Deploys those of them that are not live."""
        for detector in detectors:
            if self.live(detector) is None:
                self.deploy(detector)

    def start_agent(self) -> "subprocess.Popen[bytes]":
        """One more agent."""
        with self.log(len(self.agents)).open("wb") as log:
            agent = [sys.executable, "-c", QUICK_AGENT.format(first_host=self._first_host), str(self.jobs)]
            environment = os.environ | self._variables
            self.agents.append(subprocess.Popen(agent, env=environment, stdout=log, stderr=log))
        return self.agents[-1]

    def log(self, agent: int) -> Path:
        """What an agent has logged."""
        return self.folder / f"agent-{agent}.log"

    def running(self, detector: str) -> list[JobProcess]:
        """Its instances that have a process."""
        return [instance for instance in job_processes(self.jobs / detector) if instance.alive()]

    def live(self, detector: str) -> JobStatus | None:
        """The report of its one live job; None while there is none or more than one."""
        reports = [read_job_status(instance.folder) for instance in self.running(detector)]
        live = [report for report in reports if report is not None and report.phase is JobPhase.LIVE]
        return live[0] if len(live) == 1 else None

    def pid(self, detector: str) -> int:
        """The process of its live job, once the one that it replaced has ended."""
        return self.settled(detector).pid

    def settled(self, detector: str) -> JobStatus:
        """The report of its live job, once that is the only one."""
        seen: list[JobStatus] = []

        def only() -> bool:
            seen.extend(filter(None, [self.live(detector)]))
            return bool(seen)

        wait_for(only, f"one live job of {detector}")
        return seen[0]

    def large(self, count: int) -> set[str]:
        """Sends so many events that both rules alert on; returns their ids."""
        sent = [event(next(_sent), f"card_{n % 8}", "900.00") for n in range(count)]
        send(self.kafka, sent)
        return {e["event_id"] for e in sent}

    def alerts(self, detector: str, ids: set[str]) -> list[dict[str, Any]]:
        """The alerts of `detector` on these events."""
        return [a for a in alerts(self.kafka, detector) if a["evidence"]["event_ids"][0] in ids]

    def assert_each_once(self, detector: str, ids: set[str]) -> None:
        """Every one of these events has its alert of `detector`, and only one."""
        wait_for(lambda: len(self.alerts(detector, ids)) >= len(ids), f"the alerts of {detector}")
        assert Counter(a["evidence"]["event_ids"][0] for a in self.alerts(detector, ids)) == Counter(ids)

    @contextmanager
    def edited(self, detector: str, code: str) -> Iterator[None]:
        """For the length of the block the detector's module ends with `code`."""
        module = self.source(detector) / f"{detector}.py"
        before = module.read_text("utf-8")
        module.write_text(before + code, "utf-8")
        try:
            yield
        finally:
            module.write_text(before, "utf-8")

    def stop_agents(self) -> None:
        """Ends the agents; the jobs keep running."""
        for agent in self.agents:
            if agent.poll() is None:  # else a test has killed it
                agent.terminate()
                assert agent.wait(60) == 0

    def end(self) -> None:
        """Leaves no process."""
        self.stop_agents()
        for folder in self.jobs.iterdir() if self.jobs.is_dir() else ():
            for instance in job_processes(folder):
                instance.kill()
                wait_for(partial(_gone, instance), "the end of a job")
        for host in host_processes(self.jobs / HOSTS):
            host.kill()


@contextmanager
def running_world(kafka: KafkaSettings, folder: Path, name: str, *, first_host: bool = False) -> Iterator[World]:
    """A world in which one agent runs, and none behind the block; with `first_host` a Spark host waits there."""
    world = World(kafka, folder, name, first_host=first_host)
    try:
        world.start_agent()
        yield world
    finally:
        world.end()


def _gone(instance: JobProcess) -> bool:
    return not instance.alive()
