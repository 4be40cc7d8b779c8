"""Jobs without processes, on a clock of their own: what they do in a minute takes a test some milliseconds."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobStatus
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.supervision.job_process import JobProcess, StartRecord
from tests.deploy.agent.controllers import FakeJobs
from tests.deploy.agent.job_behaviours import steps

BEGIN = 1_000_000.0
STEP_SECONDS = 0.1
NO_PROCESS = 10_000_000
"""Above every process id of the system."""
_PIDS = itertools.count(NO_PROCESS)


@dataclass
class _Inside:
    """A job as it sees itself. It ends by returning, by SystemExit, or by a kill."""

    folder: Path
    spec: JobSpec
    behaviour: str
    now: Callable[[], float]
    stopped: bool = False
    alive: bool = True
    exit_code: int | None = None
    error: str = ""
    status: JobStatus | None = None
    running: Iterator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.running = steps(self.behaviour, self)

    def step(self) -> None:
        if not self.alive:
            return
        try:
            next(self.running)
        except StopIteration:
            self.alive, self.exit_code = False, 0
        except SystemExit as ended:
            self.alive = False
            self.exit_code, self.error = (ended.code, "") if isinstance(ended.code, int) else (1, str(ended.code))

    def read_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = json.loads(self.spec.model_dump_json())
        return spec

    def reported(self) -> JobStatus:
        return self.status or JobStatus(next(_PIDS), self.now())

    def report(self, **values: Any) -> None:
        self.status = msgspec.structs.replace(self.reported(), **values)

    def has(self, name: str) -> bool:
        return (self.folder.parent / name).exists()


class SimulatedJob(JobProcess):
    """A simulated job as one agent sees it; another agent has its own view."""

    def __init__(self, folder: Path, record: StartRecord, inside: _Inside) -> None:
        self.folder, self.record, self.inside = folder, record, inside
        self.kill_reason = ""
        self._stopping_since: float | None = None

    def alive(self) -> bool:
        return self.inside.alive

    def exit_code(self) -> int | None:
        return self.inside.exit_code

    def status(self) -> JobStatus | None:
        return self.inside.status

    def spec(self) -> JobSpec | None:
        return self.inside.spec

    def send(self, spec: JobSpec) -> None:
        self.inside.spec = spec

    def raise_priority(self) -> None:
        pass

    def memory_bytes(self) -> int:
        return 0

    def terminate(self) -> None:
        if self._stopping_since is None:
            self._stopping_since = self.inside.now()
            self.inside.stopped = True
            if self.inside.status is None:
                self.kill()

    def kill(self) -> None:
        self._stopping_since = self._stopping_since or self.inside.now()
        self.inside.alive = False

    def stopping_seconds(self) -> float:
        # more than 0 from the beginning, as if the clock never paused
        return 0.0 if self._stopping_since is None else self.inside.now() - self._stopping_since + 0.001

    def last_error(self) -> str:
        return self.inside.error


class SimulatedJobs(FakeJobs):
    """Starts simulated jobs; each takes a step while `STEP_SECONDS` pass."""

    patience = 2_000 * STEP_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._now = BEGIN
        self._jobs: dict[Path, SimulatedJob] = {}

    def clock(self) -> float:
        return self._now

    def pass_time(self) -> None:
        self._now += STEP_SECONDS
        for job in self._jobs.values():
            job.inside.step()

    def found(self, folder: Path) -> list[JobProcess]:
        found = [job for path, job in self._jobs.items() if path.parent == folder]
        views: list[JobProcess] = [SimulatedJob(job.folder, job.record, job.inside) for job in found]
        return sorted(views, key=lambda job: job.record.generation, reverse=True)

    def _launch(self, spec: DeploymentSpec, folder: Path, behaviour: str, order: JobSpec) -> JobProcess:
        pid = next(_PIDS)
        record = StartRecord(
            detector=spec.detector,
            release=spec.release,
            process=list(spec.process),
            generation=order.generation,
            state=spec.state,
            memory_mb=spec.memory_mb or 4096,
            pid=pid,
            created=float(pid),
            started_at=self._now,
            spark_host=self.host,
        )
        job = self._jobs[folder] = SimulatedJob(folder, record, _Inside(folder, order, behaviour, self.clock))
        return job
