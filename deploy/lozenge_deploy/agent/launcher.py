"""Starts jobs of releases. Their environments are built in the background, so that the agent never waits."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from lozenge.detector.manifest import Manifest
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.releases.release_store import Releases, environment_for
from lozenge_deploy.supervision.job_process import JobProcess, job_processes

OVERHEAD_MB = 1024
"""What a job needs besides its JVM's heap: the JVM's own memory, the driver's Python with a fold's state, workers."""


class Launcher:
    """Used by one thread. A release is immutable, so its environment is built once."""

    def __init__(self, kafka: KafkaSettings, releases: Releases) -> None:
        self._kafka, self._releases = kafka, releases
        self._workers = ThreadPoolExecutor(1, "environments")
        self._prepared: dict[tuple[str, str], Future[tuple[Path, Manifest]]] = {}

    def found(self, folder: Path) -> list[JobProcess]:
        """Every job below the folder of a detector, the newest generation first."""
        return job_processes(folder)

    def prepared(self, spec: DeploymentSpec) -> bool:
        """Whether `start` can start at once; otherwise starts the preparation. Its error is raised by `start`."""
        key = spec.detector, spec.release
        if key not in self._prepared:
            self._prepared[key] = self._workers.submit(self._prepare, *key)
        return self._prepared[key].done()

    def declared(self, spec: DeploymentSpec) -> Manifest | None:
        """What the release declares, if it is prepared without an error."""
        future = self._prepared.get((spec.detector, spec.release))
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result()[1]

    def _declaration(self, spec: DeploymentSpec) -> Manifest:
        """What the release declares; waits until it is prepared, or raises the error of its preparation once."""
        self.prepared(spec)
        future = self._prepared[spec.detector, spec.release]
        if future.exception() is not None:
            del self._prepared[spec.detector, spec.release]
        return future.result()[1]

    def start(self, spec: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess:
        """Starts a job of the release; raises the error of its preparation, or OSError."""
        resources = self._declaration(spec).resources
        python, _ = self._prepared[spec.detector, spec.release].result()
        memory_mb, cores = spec.memory_mb or resources.memory_mb, spec.cores or resources.cores
        variables = {
            "LOZENGE_JOB_FOLDER": str(folder),
            "LOZENGE_JOB_RELEASE": spec.release,
            "LOZENGE_JOB_INSTANCE": f"g{generation}",
            "LOZENGE_JOB_STATE": spec.state if standby else "keep",
            "LOZENGE_JOB_CORES": str(cores),
            "LOZENGE_JOB_MEMORY_MB": str(memory_mb),
            **self._kafka.variables,
        }
        return JobProcess.start(
            folder,
            [str(python), "-m", "lozenge.job", spec.detector],
            in_environment(os.environ | variables),
            spec.job_spec(generation, standby=standby),
            detector=spec.detector,
            release=spec.release,
            process=spec.process,
            state=spec.state,
            memory_mb=memory_mb + OVERHEAD_MB,
        )

    def close(self) -> None:
        """Cancels the preparations that have not started."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, detector: str, release: str) -> tuple[Path, Manifest]:
        found = self._releases.get(detector, release)
        return environment_for(found, self._releases), Manifest.model_validate(found.declaration)
