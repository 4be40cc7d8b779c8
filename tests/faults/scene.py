"""The whole platform in one folder, ready to be hurt: broker behind a proxy, stages, agent, detectors, a webhook."""

import os
import signal
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

from lozenge.errors import BrokerUnavailable
from lozenge.host.address import published
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.retries import retry
from lozenge_deploy.hosts.host_process import HOSTS
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_deploy.supervision.job_process import JobProcess, job_processes
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Supervisor
from tests.bench.checkout import Checkout
from tests.faults.file_flow import FileFlow
from tests.faults.flow import Flow
from tests.faults.plan import CACHE_SERVER, DETECTORS
from tests.faults.proxy import Proxy
from tests.faults.receiver import Ledger
from tests.faults.sinks import SceneSinks

START_SECONDS = 120.0


class Scene:
    """What a fault can be done to. `kafka` leads straight to the broker; everybody else goes through `proxy`.

    `files` are None where no record comes in a file.
    """

    def __init__(
        self,
        folder: Path,
        broker: EmbeddedBroker,
        proxy: Proxy,
        hooks: Proxy,
        receiver: Ledger,
        supervisor: Supervisor,
        checkout: Checkout,
        flow: Flow,
        sinks: SceneSinks,
        files: FileFlow | None,
    ) -> None:
        self.folder, self.broker, self.proxy, self.hooks = folder, broker, proxy, hooks
        self.receiver, self.checkout, self.flow, self.sinks = receiver, checkout, flow, sinks
        self.files = files
        self.kafka = KafkaSettings(bootstrap=broker.bootstrap)
        self._supervisor = supervisor
        self._broker_lock = threading.Lock()

    @property
    def detectors(self) -> Collection[str]:
        """Those that are deployed."""
        return self.checkout.kinds

    def bounce(self, *, gently: bool = False, away: float = 0.0) -> None:
        """Ends the broker, as a power cut does or in order, and starts it again after `away` seconds."""
        with self._broker_lock:
            if gently:
                self.broker.stop()
            else:
                self.broker.kill()
            time.sleep(away)
            self._start()

    def revive(self) -> bool:
        """Starts the broker again if it has ended by itself; whether it had."""
        with self._broker_lock:
            dead = self.broker.pid is None
            self._start()
            return dead

    def _start(self) -> None:
        """As an operator's supervisor would: again and again while it fails, say on a disk that another fault fills."""
        retry(self.broker.start, lambda error: isinstance(error, BrokerUnavailable), seconds=START_SECONDS, pause=1)

    def failed(self) -> str:
        """Which of the stages the supervisor has given up, with its last words; "" for none."""
        children = self._supervisor.children.items()
        return "; ".join(
            f"{name}: {child.last_error()}" for name, child in children if child.state is ProgramState.FAILED
        )

    def complete(self) -> bool:
        """Whether every stage and a job of every detector runs."""
        stages = all(child.state is ProgramState.RUNNING for child in self._supervisor.children.values())
        return stages and all(self.instance(detector) for detector in self.detectors)

    def instance(self, detector: str) -> JobProcess | None:
        """The latest job of a detector that runs; None if none does."""
        running = [i for i in job_processes(self.folder / "jobs" / detector) if i.alive()]
        return max(running, key=lambda i: i.record.started_at, default=None)

    def leader(self, target: str) -> int | None:
        """The process group of a stage, of a server or of a detector's job; None if it does not run."""
        if target == "broker":
            return self.broker.pid
        if target == CACHE_SERVER:
            return self.sinks.server.pid if self.sinks.server else None
        if target in DETECTORS:
            return self._job_leader(target)
        child = self._supervisor.children[target]
        return child.pid if child.state is ProgramState.RUNNING else None

    def main(self, target: str) -> int | None:
        """Its own process: Python's, where a JVM is its child."""
        return self.leader(target)

    def _job_leader(self, detector: str) -> int | None:
        """What the job says of itself: a fork leads a group, and the process that was started only represents it."""
        if (instance := self.instance(detector)) is None:
            return None
        report = instance.status()
        return report.pid if report else instance.record.pid

    def jvm(self, target: str) -> int | None:
        """The JVM that it has started, or that of its Spark host, where other jobs are too."""
        instance = self.instance(target) if target in DETECTORS else None
        if instance is not None and (host := instance.record.spark_host):
            address = published(self.folder / "jobs" / HOSTS / host)
            return address.jvm_pid if address else None
        if (leader := self.leader(target)) is None:
            return None
        with suppress(psutil.Error):
            return next((p.pid for p in psutil.Process(leader).children(recursive=True) if p.name() == "java"), None)
        return None


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to a process group, if there still is one."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)
