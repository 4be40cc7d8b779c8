"""A keeper with real processes: fake jobs, started as real ones are, and what it says."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lozenge.detector.manifest import Manifest
from lozenge_deploy.agent.controller import PATIENCE, Controller, Patience
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.control.records import DeploymentSpec, DeploymentStatus, HistoryEvent, Outcome, Phase
from lozenge_deploy.supervision.job_process import JobProcess, job_processes

DEADLINE_SECONDS = 30.0
FAKE_JOB = Path(__file__).with_name("fake_job.py")
DECLARATION = Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test", "trigger": "100ms"})


class FakeJobs:
    """What starts fake jobs; a release "r1 crash at start" behaves as its name says."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.started: list[JobProcess] = []

    def prepared(self, desired: DeploymentSpec) -> bool:
        return True

    def declaration(self, desired: DeploymentSpec) -> Manifest:
        return DECLARATION

    def start(self, desired: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess:
        if self.error is not None:
            raise self.error
        _, _, behaviour = desired.release.partition(" ")
        instance = JobProcess.start(
            folder,
            [sys.executable, str(FAKE_JOB), behaviour],
            os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            desired.job_spec(generation, standby=standby),
            detector=desired.detector,
            release=desired.release,
            process=desired.process,
            state=desired.state,
            memory_mb=desired.memory_mb or 4096,
        )
        self.started.append(instance)
        return instance

    def close(self) -> None:
        """There is nothing to drop."""


@dataclass
class House:
    """A keeper of one detector, what is desired of it, and all that it has said."""

    folder: Path
    desired: DeploymentSpec
    jobs: FakeJobs = field(default_factory=FakeJobs)
    calm: float = 10 * PATIENCE.calm
    newest: int = 0
    patience: Patience = PATIENCE
    history: list[HistoryEvent] = field(default_factory=list)
    said: list[DeploymentStatus] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keeper = self.new_keeper(DeploymentStatus(detector=self.desired.detector))

    def new_keeper(self, observed: DeploymentStatus) -> Controller:
        """A keeper as another agent would have it."""
        self.voice = StatusReporter(observed, self.said.append, self.history.append, self.wish)
        return Controller(self.folder, self.jobs, lambda: self.newest, self.voice, self.patience)

    def wait_only(self, patience: Patience) -> None:
        """From now on another keeper has the detector, of this `patience`."""
        self.patience = patience
        self.keeper = self.new_keeper(self.observed)

    def wish(self, desired: DeploymentSpec) -> None:
        """Makes `desired` what is wanted."""
        self.desired = desired

    def change(self, revision: str, **changes: object) -> None:
        """Wishes something else, with the present wish to fall back to."""
        before = self.desired if self.observed.outcome is Outcome.WATCHED else self.desired.but(before=None)
        self.desired = self.desired.model_copy(update={"revision": revision, "before": before, **changes})

    @property
    def observed(self) -> DeploymentStatus:
        """What the keeper said last."""
        return self.voice.observed

    @property
    def live(self) -> JobProcess:
        """The live job, which there must be."""
        assert self.keeper.live is not None
        return self.keeper.live

    def happened(self, what: str) -> list[HistoryEvent]:
        """What of this kind happened."""
        return [h for h in self.history if h.what == what]

    def until(self, condition: Callable[[], object]) -> None:
        """Ticks until it holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not in time: {self.observed} {[h.what for h in self.history]}"
            self.keeper.tick(self.desired, self.calm)
            time.sleep(0.02)

    def until_runs(self) -> None:
        """Ticks until what is desired is live."""
        self.until(lambda: self.runs(self.desired.revision))

    def runs(self, revision: str) -> bool:
        """Whether the change `revision` is live."""
        good = self.observed.outcome in (Outcome.WATCHED, Outcome.DONE)
        return self.observed.revision == revision and good and self.observed.phase is Phase.RUNNING

    def generation(self) -> int:
        """The generation of the live job."""
        return self.observed.generation

    def leave(self) -> None:
        """Ends every process, and takes note of its end."""
        left = {id(i): i for i in (*self.jobs.started, *job_processes(self.folder))}
        for instance in left.values():
            instance.kill()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(instance.alive() for instance in left.values()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
