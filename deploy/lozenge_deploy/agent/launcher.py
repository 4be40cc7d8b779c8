"""Starts jobs of releases: their environments are made in the background, so that nobody waits for them."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from lozenge.detector.manifest import Manifest
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.releases.release_store import Releases, environment_for
from lozenge_deploy.supervision.job_process import JobProcess

OVERHEAD_MB = 1024
"""Beside its JVM's heap a job takes the JVM's own memory, its driver's Python with a fold's state, and workers."""


class Launcher:
    """Used by one thread. A release is immutable, so what was prepared once stays so."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._workers = ThreadPoolExecutor(1, "environments")
        self._prepared: dict[tuple[str, str], Future[tuple[Path, Manifest]]] = {}

    def prepared(self, desired: DeploymentSpec) -> bool:
        """Whether `start` would not have to wait; asks for it if nobody has. An error comes with `start`."""
        key = desired.detector, desired.release
        if key not in self._prepared:
            self._prepared[key] = self._workers.submit(self._prepare, *key)
        return self._prepared[key].done()

    def declaration(self, desired: DeploymentSpec) -> Manifest:
        """What the release declares; waits until it is prepared, or raises and forgets what kept it from that."""
        self.prepared(desired)
        future = self._prepared[desired.detector, desired.release]
        if future.exception() is not None:
            del self._prepared[desired.detector, desired.release]
        return future.result()[1]

    def start(self, desired: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess:
        """Starts a job of the release; raises what kept it from being prepared, or OSError."""
        resources = self.declaration(desired).resources
        python, _ = self._prepared[desired.detector, desired.release].result()
        memory_mb, cores = desired.memory_mb or resources.memory_mb, desired.cores or resources.cores
        variables = {
            "LOZENGE_JOB_FOLDER": str(folder),
            "LOZENGE_JOB_RELEASE": desired.release,
            "LOZENGE_JOB_INSTANCE": f"g{generation}",
            "LOZENGE_JOB_STATE": desired.state if standby else "keep",
            "LOZENGE_JOB_CORES": str(cores),
            "LOZENGE_JOB_MEMORY_MB": str(memory_mb),
        }
        return JobProcess.start(
            folder,
            [str(python), "-m", "lozenge.job", desired.detector],
            in_environment(os.environ | variables),
            desired.job_spec(generation, standby=standby),
            detector=desired.detector,
            release=desired.release,
            process=desired.process,
            state=desired.state,
            memory_mb=memory_mb + OVERHEAD_MB,
        )

    def close(self) -> None:
        """Drops what is not prepared yet."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, detector: str, release: str) -> tuple[Path, Manifest]:
        found = self._releases.get(detector, release)
        return environment_for(found, self._releases), Manifest.model_validate(found.declaration)
