"""Starts and restarts of one replica's jobs: in which folder, with which generation, and after which backoff."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lozenge.detector.manifest import Manifest
from lozenge.errors import BrokerUnavailable, LozengeError
from lozenge_deploy.agent.health import Health
from lozenge_deploy.agent.status_reporter import StatusReporter
from lozenge_deploy.control.records import DeploymentSpec, Phase
from lozenge_deploy.supervision.job_process import JobProcess, job_processes, newest_generation

NO_BROKER, NO_BROKER_SECONDS = 3, 1.0
"""The exit code of a job without a broker, which does not count as a crash, and the seconds before its restart."""


class JobLauncher(Protocol):
    """Starts processes of a release; see `Launcher`."""

    def prepared(self, spec: DeploymentSpec) -> bool: ...
    def declaration(self, spec: DeploymentSpec) -> Manifest: ...
    def start(self, spec: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess: ...
    def close(self) -> None: ...


class RestartPolicy:
    """Starts jobs in folders below `folder`; `newest` returns the generation that committed last.

    `health` is that of the present revision, and decides the backoff.
    """

    def __init__(
        self, folder: Path, launcher: JobLauncher, newest: Callable[[], int], reporter: StatusReporter
    ) -> None:
        self._folder, self._launcher, self._newest, self._reporter = folder, launcher, newest, reporter
        self.health = Health()
        self._next_start_at = 0.0

    def reset(self) -> None:
        """A new revision starts without the exits of the earlier one."""
        self.health, self._next_start_at = Health(), 0.0

    def exited(self, code: int | None, *, broker_stable: bool) -> bool:
        """Sets when the next start may be. Returns whether the exit counts; without a broker it does not."""
        counts = broker_stable and code != NO_BROKER
        if counts:
            self.health.exited(time.time())
        self._next_start_at = time.time() + max(self.health.backoff(), 0.0 if counts else NO_BROKER_SECONDS)
        return counts

    def start(self, spec: DeploymentSpec, *, standby: bool, replaces: bool = False) -> JobProcess | None:
        """Starts a job; None during the backoff, while its environment is built, or if it cannot be started.

        If it `replaces` a live job, the phase of that job is kept, and a failed start is rolled back at once.
        Raises BrokerUnavailable.
        """
        if time.time() < self._next_start_at:
            return None
        if not self._launcher.prepared(spec):
            self._reporter.update(phase=self._reporter.status.phase if replaces else Phase.PREPARING)
            return None
        try:
            generation = self.generation()
            folder = self._folder_for(spec, generation, standby)
            job = self._launcher.start(spec, folder, generation, standby=standby)
        except BrokerUnavailable:
            self._next_start_at = time.time() + NO_BROKER_SECONDS
            raise
        except (LozengeError, OSError) as error:
            self.health.exited(time.time())
            self._next_start_at = time.time() + max(1.0, self.health.backoff())
            self._reporter.update(reason=str(error), phase=self._reporter.status.phase if replaces else Phase.WAITING)
            is_present = spec.revision == self._reporter.status.revision
            if is_present and (replaces or self.health.crash_loop(time.time())):
                self._reporter.roll_back(spec, str(error))
            return None
        self._reporter.record("started as standby" if standby else "started", job)
        return job

    def generation(self) -> int:
        """A generation above all that ever committed, was reported, or was started here."""
        return max(newest_generation(self._folder), self._reporter.status.generation, self._newest()) + 1

    def _folder_for(self, spec: DeploymentSpec, generation: int, standby: bool) -> Path:
        """The folder of a new job. A restarted job keeps its folder, which has an aggregate's checkpoint."""
        if not standby:
            for job in job_processes(self._folder):
                if job.matches(spec.process) and not job.alive():
                    return job.folder
        return self._folder / f"g{generation}"
