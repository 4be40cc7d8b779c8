"""A controller with fake jobs: processes that start like real ones, or simulated jobs, and what it reports of them."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lozenge.detector.manifest import Manifest
from lozenge.protocol.job_spec import JobSpec
from lozenge_deploy.agent.controller import Controller
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.agent.tick import TIMEOUTS, Timeouts
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, HistoryEvent
from lozenge_deploy.supervision.job_process import JobProcess, StartRecord, job_processes

FAKE_JOB = Path(__file__).with_name("fake_job.py")
DECLARATION = Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test", "trigger": "100ms"})


class FakeJobs:
    """Starts fake jobs as processes; a release "r1 crash at start" behaves as its name says."""

    patience = 30.0
    """How long a test waits for what it expects, in seconds of their clock."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.started: list[JobProcess] = []
        self.host = ""
        self.ended_hosts: dict[str, bool] = {}
        """Each with whether the detector was alone there."""

    def clock(self) -> float:
        return time.time()

    def pass_time(self) -> None:
        time.sleep(0.02)

    def found(self, folder: Path) -> list[JobProcess]:
        return job_processes(folder)

    def prepared(self, spec: DeploymentSpec) -> bool:
        return True

    def declared(self, spec: DeploymentSpec) -> Manifest:
        return DECLARATION

    def start(self, spec: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess:
        if self.error is not None:
            raise self.error
        _, _, behaviour = spec.release.partition(" ")
        job = self._launch(spec, folder, behaviour, spec.job_spec(generation, standby=standby))
        self.started.append(job)
        return job

    def host_has_ended(self, record: StartRecord) -> bool:
        return record.spark_host in self.ended_hosts

    def was_alone(self, record: StartRecord) -> bool:
        return self.ended_hosts[record.spark_host]

    def close(self) -> None:
        """There is nothing to cancel."""

    def _launch(self, spec: DeploymentSpec, folder: Path, behaviour: str, order: JobSpec) -> JobProcess:
        return JobProcess.start(
            folder,
            [sys.executable, str(FAKE_JOB), behaviour],
            os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            order,
            detector=spec.detector,
            release=spec.release,
            process=spec.process,
            state=spec.state,
            memory_mb=spec.memory_mb or 4096,
        )


@dataclass
class ControllerHarness:
    """A controller of one detector, its spec, and all that it has reported."""

    folder: Path
    spec: DeploymentSpec
    jobs: FakeJobs = field(default_factory=FakeJobs)
    broker_stable_seconds: float = 10 * TIMEOUTS.broker_stable
    newest: int = 0
    timeouts: Timeouts = TIMEOUTS
    history: list[HistoryEvent] = field(default_factory=list)
    reported: list[DeploymentStatus] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.controller = self.new_controller(DeploymentStatus(detector=self.spec.detector))

    def new_controller(self, status: DeploymentStatus) -> Controller:
        """A controller of another agent."""
        self.reporter = StatusReporter(status, self.reported.append, self.note, self.apply)
        return Controller(
            self.folder, self.jobs, lambda: self.newest, self.reporter, self.timeouts, clock=self.jobs.clock
        )

    def note(self, event: HistoryEvent) -> None:
        """Takes an event, at the time of the jobs' clock."""
        self.history.append(event.model_copy(update={"at": datetime.fromtimestamp(self.jobs.clock(), UTC)}))

    def restart(self) -> None:
        """Another agent's controller takes its first step."""
        self.controller = self.new_controller(self.status)
        self.controller.tick(self.spec, self.broker_stable_seconds)

    def use_timeouts(self, timeouts: Timeouts) -> None:
        """Replaces the controller by one with these timeouts, which adopts what runs."""
        runs, self.timeouts = self.controller.live is not None, timeouts
        if runs:
            self.restart()
        else:
            self.controller = self.new_controller(self.status)

    def apply(self, spec: DeploymentSpec) -> None:
        """Applies `spec`."""
        self.spec = spec

    def change(self, revision: str, **changes: object) -> None:
        """Applies another spec, which rolls back to the present one."""
        before = self.spec if self.status.outcome is ChangeOutcome.WATCHED else self.spec.updated(before=None)
        self.spec = self.spec.model_copy(update={"revision": revision, "before": before, **changes})

    @property
    def status(self) -> DeploymentStatus:
        """The newest status."""
        return self.reporter.status

    @property
    def live(self) -> JobProcess:
        """The live job, which must exist."""
        assert self.controller.live is not None
        return self.controller.live

    def events(self, what: str) -> list[HistoryEvent]:
        """The events of one kind."""
        return [h for h in self.history if h.what == what]

    def until(self, condition: Callable[[], object]) -> None:
        """Ticks until the condition is true."""
        deadline = self.jobs.clock() + self.jobs.patience
        while not condition():
            assert self.jobs.clock() < deadline, f"not in time: {self.status} {[h.what for h in self.history]}"
            self.tick()

    def tick(self) -> None:
        """Ticks once, and lets the jobs run for a moment."""
        self.controller.tick(self.spec, self.broker_stable_seconds)
        self.jobs.pass_time()

    def until_runs(self) -> None:
        """Ticks until the present spec is live."""
        self.until(lambda: self.runs(self.spec.revision))

    def runs(self, revision: str) -> bool:
        """Whether the change `revision` is live."""
        good = self.status.outcome in (ChangeOutcome.WATCHED, ChangeOutcome.DONE)
        return self.status.revision == revision and good and self.status.phase is DetectorPhase.RUNNING

    def generation(self) -> int:
        """The generation of the live job."""
        return self.status.generation

    def close(self) -> None:
        """Kills every process and waits for its end."""
        left = [*self.jobs.started, *self.jobs.found(self.folder)]
        for job in left:
            job.kill()
        deadline = self.jobs.clock() + self.jobs.patience
        while any(job.alive() for job in left):
            assert self.jobs.clock() < deadline
            self.jobs.pass_time()
