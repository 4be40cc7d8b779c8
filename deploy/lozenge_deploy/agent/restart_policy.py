"""Starting the jobs of one detector: where, as which generation, and when again after one has ended."""

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

NO_BROKER, NO_BROKER_WAIT = 3, 1.0
"""The exit code of a job that found no broker, which is not its fault, and seconds before it tries again."""


class Launches(Protocol):
    """What makes a process of a release; see `Launcher`."""

    def prepared(self, desired: DeploymentSpec) -> bool: ...
    def declaration(self, desired: DeploymentSpec) -> Manifest: ...
    def start(self, desired: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess: ...
    def close(self) -> None: ...


class RestartPolicy:
    """Starts jobs in folders below `folder`; `newest` gives the generation that committed last.

    `health` is that of what is wanted now, and says how long to wait.
    """

    def __init__(self, folder: Path, launcher: Launches, newest: Callable[[], int], voice: StatusReporter) -> None:
        self._folder, self._launcher, self._newest, self._voice = folder, launcher, newest, voice
        self.health = Health()
        self._again_at = 0.0

    def begin(self) -> None:
        """Something else is wanted: nothing is held against it yet."""
        self.health, self._again_at = Health(), 0.0

    def ended(self, code: int | None, *, calm: bool) -> bool:
        """Sets when the next start may be; whether the exit counts, which one for lack of a broker does not."""
        counts = calm and code != NO_BROKER
        if counts:
            self.health.exited(time.time())
        self._again_at = time.time() + max(self.health.wait(), 0.0 if counts else NO_BROKER_WAIT)
        return counts

    def start(self, desired: DeploymentSpec, *, standby: bool, relieves: bool = False) -> JobProcess | None:
        """None while it has to wait or its environment is being made, or if it cannot be started at all.

        Where it `relieves` a live job, that one's phase stays, and what cannot be started is given up at once.
        Raises BrokerUnavailable.
        """
        if time.time() < self._again_at:
            return None
        if not self._launcher.prepared(desired):
            self._voice.note(phase=self._voice.observed.phase if relieves else Phase.PREPARING)
            return None
        try:
            generation = self.generation()
            place = self._place(desired, generation, standby)
            instance = self._launcher.start(desired, place, generation, standby=standby)
        except BrokerUnavailable:
            self._again_at = time.time() + NO_BROKER_WAIT
            raise
        except (LozengeError, OSError) as error:
            self.health.exited(time.time())
            self._again_at = time.time() + max(1.0, self.health.wait())
            self._voice.note(reason=str(error), phase=self._voice.observed.phase if relieves else Phase.WAITING)
            wanted = desired.revision == self._voice.observed.revision
            if wanted and (relieves or self.health.crash_loop(time.time())):
                self._voice.fall_back(desired, str(error))
            return None
        self._voice.happened("started standing by" if standby else "started", instance)
        return instance

    def generation(self) -> int:
        """Above all that ever committed, was observed, or was started or ordered here."""
        return max(newest_generation(self._folder), self._voice.observed.generation, self._newest()) + 1

    def _place(self, desired: DeploymentSpec, generation: int, standby: bool) -> Path:
        """A folder for a new job; one that died goes on in its own, where an aggregate has its checkpoint."""
        if not standby:
            for instance in job_processes(self._folder):
                if instance.matches(desired.process) and not instance.alive():
                    return instance.folder
        return self._folder / f"g{generation}"
