"""A broker's worth of detectors under traffic, with an agent, an operator's command line and an observer."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.protocol.job_status import JobStatus
from lozenge_deploy.hosts.host_process import HOSTS, host_processes
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.supervision.job_process import job_processes
from tests.bench.checkout import Checkout
from tests.bench.harness.platform import TOPICS
from tests.bench.soak import Alerts, Traffic, Watcher, live_report
from tests.streams import every_topic

SEED = int(os.environ.get("LOZENGE_SOAK_SEED", "4"))
TRIGGER = os.environ.get("LOZENGE_SOAK_TRIGGER", "2s")
"""Five jobs with a batch a second keep two cores so busy that nothing is left for a start."""
DEADLINE_SECONDS = 300.0


class World(Checkout):
    """An agent, a scratch checkout with `detectors` (kind by name), traffic of `rate` events a second."""

    def __init__(self, folder: Path, broker: EmbeddedBroker, detectors: Mapping[str, str], rate: int) -> None:
        super().__init__(folder, broker.bootstrap, detectors)
        self.jobs, self.broker = folder / "jobs", broker
        self.kafka = KafkaSettings(bootstrap=broker.bootstrap)
        self._agent: subprocess.Popen[bytes] | None = None
        self.traffic = Traffic(self.kafka, rate)
        self.alerts = Alerts(self.kafka, self.traffic, list(detectors))
        self.watcher = Watcher(self.jobs)

    def show_cost(self, when: str) -> None:
        """What each detector takes, as an operator sees it."""
        print(f"{when}:", flush=True)
        command = [sys.executable, "-m", "lozenge_deploy.cli", "status"]
        subprocess.run(command, env=self.environment, cwd=self.folder, check=True)

    def start_agent(self) -> None:
        """Starts an agent; a job outlives it."""
        with (self.folder / "agent.log").open("ab") as log:
            command = [sys.executable, "-m", "lozenge_deploy.agent", str(self.jobs)]
            self._agent = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def kill_agent(self) -> None:
        """As a crash does."""
        assert self._agent
        self._agent.kill()
        self._agent.wait()

    def end(self) -> None:
        """Leaves nothing running."""
        self.watcher.end()
        self.alerts.end()
        assert self._agent
        self._agent.terminate()
        self._agent.wait()
        for folder in self.jobs.iterdir() if self.jobs.is_dir() else ():
            for instance in job_processes(folder):
                instance.kill()
        for host in host_processes(self.jobs / HOSTS):
            host.terminate()

    def live(self, detector: str) -> JobStatus | None:
        """The report of the live job."""
        return live_report(self.jobs / detector)

    def pid(self, detector: str) -> int:
        """The process of the live job, which must run."""
        report = self.live(detector)
        assert report is not None, f"{detector} does not run"
        return report.pid

    def missing(self) -> dict[str, str]:
        """What is missing or repeated of the alerts that the traffic so far should have raised, by detector."""
        wrong = {}
        for name, kind in self.kinds.items():
            expected = self.traffic.large if kind == "rule" else self.traffic.moved
            counts = Counter(alert.event_id for alert in list(self.alerts.received[name]))
            missing, twice = len(expected - counts.keys()), sum(n > 1 for n in counts.values())
            unexpected = len(counts.keys() - expected)
            if missing or twice or unexpected:
                wrong[name] = f"{missing} missing, {twice} twice, {unexpected} unexpected of {len(expected)}"
        return wrong

    def await_all(self) -> dict[str, str]:
        """Waits, after the traffic has ended, until everything sent was processed; what is `missing` then."""
        wait_until(lambda: not self.missing())
        return self.missing()


class Operations:
    """What an operator, or an accident, does to one detector of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(SEED)

    def update(self, detector: str) -> None:
        """Another release."""
        self._world.change(detector)
        self._world.lozenge("deploy", detector)

    def rollback(self, detector: str) -> None:
        """The release before."""
        if self._world.unchanged(detector):
            self.update(detector)
        self._world.lozenge("rollback", detector)

    def set(self, detector: str) -> None:
        """Another value that makes no difference to what is raised."""
        value = self._chance.randint(400, 800)
        self._world.lozenge(
            "set", detector, f"limit={value}" if self._world.kinds[detector] == "rule" else f"within={value}s"
        )

    def pause(self, detector: str) -> None:
        """And resume."""
        self._world.lozenge("pause", detector)
        self._world.lozenge("resume", detector)

    def retire(self, detector: str) -> None:
        """And deploy again."""
        self._world.lozenge("retire", detector)
        self._world.lozenge("deploy", detector)

    def restart(self, detector: str) -> None:
        """Another process of the same release."""
        self._world.lozenge("restart", detector)

    def kill_job(self, detector: str) -> None:
        """And wait until the agent has started it again."""
        before = self._world.pid(detector)
        os.kill(before, signal.SIGKILL)
        again = wait_until(lambda: (live := self._world.live(detector)) is not None and live.pid != before)
        assert again, f"{detector} was not started again"

    def kill_the_agent(self, detector: str) -> None:
        """And start another one, which has something to do."""
        self._world.kill_agent()
        self._world.start_agent()
        self._world.lozenge("set", detector, "--max-batch", str(self._chance.randint(50_000, 200_000)))


def wait_until(condition: Callable[[], bool]) -> bool:
    """Whether `condition` came to hold before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return holds


def stopped(pid: int) -> bool:
    """Whether the process is stopped."""
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


@contextmanager
def world_of(folder: Path, detectors: Mapping[str, str], rate: int, *, trusted: bool = False) -> Iterator[World]:
    """A broker and a world with its agent, traffic and all `detectors` deployed; it ends with the block.

    With `trusted` no tests of the detectors run before they are deployed for the first time.
    """
    with EmbeddedBroker(folder / "broker", heap_mb=512) as broker:
        world = World(folder, broker, detectors, rate)
        ensure_topics(world.kafka, every_topic(TOPICS))
        ensure_topics(world.kafka, [topic for name in detectors for topic in TOPICS.detector(name).contracts()])
        for name in detectors:
            world.scaffold(name, TRIGGER)
        world.start_agent()
        for thread in (world.traffic, world.alerts, world.watcher):
            thread.start()
        try:
            for name in detectors:
                if trusted:
                    world.trust(name)
                began = time.monotonic()
                world.lozenge("deploy", name)
                print(f"deploy {name}, the first time: {time.monotonic() - began:.1f} s", flush=True)
            yield world
        finally:
            world.end()
