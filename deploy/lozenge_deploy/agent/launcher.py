"""Starts jobs of releases. Their environments are built in the background, so that the agent never waits."""

import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from lozenge.contracts.isolation import Isolation
from lozenge.detector.manifest import Manifest
from lozenge.detector.resources import Resources, isolation_with
from lozenge.errors import LozengeError, SparkGone
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.hosts.host_pool import HostPool
from lozenge_deploy.hosts.placement import Need, weight_of
from lozenge_deploy.releases.environments import base_environment, in_environment
from lozenge_deploy.releases.release_store import Releases, environment_for
from lozenge_deploy.supervision.job_process import JobProcess, StartRecord, job_processes

OVERHEAD_MB = 1024
"""What a job needs besides its JVM's heap: the JVM's own memory, the driver's Python with a fold's state, workers."""
FINGERPRINT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A release that can start."""

    python: Path
    declaration: Manifest


class Launcher:
    """Used by one thread. A release is immutable, so its environment is built once.

    With `first_host`, `hosts` keeps one that waits for the first detector.
    """

    def __init__(self, kafka: KafkaSettings, releases: Releases, hosts: HostPool, *, first_host: bool = False) -> None:
        self._kafka, self._releases, self._hosts = kafka, releases, hosts
        self._workers = ThreadPoolExecutor(1, "environments")
        self._prepared: dict[tuple[str, str], Future[_Prepared]] = {}
        self._fingerprints: dict[Path, Future[str]] = {}
        if first_host:
            # no detector waits for this environment, which is downloaded on a new machine
            Thread(target=_keep_first, args=[hosts], name="first host", daemon=True).start()

    def found(self, folder: Path) -> list[JobProcess]:
        """Every job below the folder of a detector, the newest generation first."""
        return job_processes(folder)

    def prepared(self, spec: DeploymentSpec) -> bool:
        """Whether `start` can start at once; otherwise starts the preparation. Its error is raised by `start`."""
        key = spec.detector, spec.release
        if key not in self._prepared:
            self._prepared[key] = self._workers.submit(self._prepare, *key)
        if not (future := self._prepared[key]).done() or future.exception() is not None:
            return future.done()
        ready = future.result()
        if not _shares(spec, ready.declaration):
            return True
        if ready.python not in self._fingerprints:
            self._fingerprints[ready.python] = self._workers.submit(_fingerprint, ready.python)
        if not (known := self._fingerprints[ready.python]).done() or known.exception() is not None:
            return known.done()
        return self._hosts.has_room(self._need(spec, ready), ready.python)

    def declared(self, spec: DeploymentSpec) -> Manifest | None:
        """What the release declares, if it is prepared without an error."""
        future = self._prepared.get((spec.detector, spec.release))
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result().declaration

    def start(self, spec: DeploymentSpec, folder: Path, generation: int, *, standby: bool) -> JobProcess:
        """Starts a job of the release; raises the error of its preparation, SparkGone if no host starts, or OSError."""
        ready = self._ready(spec)
        memory_mb, cores = _resources(spec, ready.declaration)
        need = self._need(spec, ready) if _shares(spec, ready.declaration) else None
        host = self._hosts.take(need) if need is not None else None
        variables = {
            "LOZENGE_JOB_FOLDER": str(folder),
            "LOZENGE_JOB_RELEASE": spec.release,
            "LOZENGE_JOB_INSTANCE": f"g{generation}",
            "LOZENGE_JOB_STATE": spec.state if standby else "keep",
            "LOZENGE_JOB_CORES": str(cores),
            "LOZENGE_JOB_MEMORY_MB": str(memory_mb),
            **({"LOZENGE_JOB_HOST": str(host)} if host is not None else {}),
            **self._kafka.variables,
        }
        return JobProcess.start(
            folder,
            [str(ready.python), "-m", "lozenge.job", spec.detector],
            in_environment(os.environ | variables, ready.python),
            spec.job_spec(generation, standby=standby),
            detector=spec.detector,
            release=spec.release,
            process=spec.process,
            state=spec.state,
            memory_mb=OVERHEAD_MB + (memory_mb if host is None else 0),
            spark_host=host.name if host is not None else "",
            weight=need.weight if need is not None else 0,
        )

    def host_has_ended(self, record: StartRecord) -> bool:
        """Whether the job used a Spark host that has ended."""
        return bool(record.spark_host) and self._hosts.has_ended(record.spark_host)

    def was_alone(self, record: StartRecord) -> bool:
        """Whether no other detector was on the host of the job when that ended."""
        return self._hosts.neighbours_at_end(record.spark_host) == 0

    def close(self) -> None:
        """Cancels the preparations that have not started."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _ready(self, spec: DeploymentSpec) -> _Prepared:
        """Waits until the release is prepared, or raises the error of its preparation once."""
        self.prepared(spec)
        future = self._prepared[spec.detector, spec.release]
        if future.exception() is not None:
            del self._prepared[spec.detector, spec.release]
        return future.result()

    def _need(self, spec: DeploymentSpec, ready: _Prepared) -> Need:
        """What it needs of a host; raises the error of the look at its Spark once."""
        known = self._fingerprints[ready.python]
        if known.exception() is not None:
            del self._fingerprints[ready.python]
        return Need(spec.detector, known.result(), weight_of(*_resources(spec, ready.declaration)))

    def _prepare(self, detector: str, release: str) -> _Prepared:
        found = self._releases.get(detector, release)
        return _Prepared(environment_for(found, self._releases), Manifest.model_validate(found.declaration))


def _resources(spec: DeploymentSpec, declaration: Manifest) -> tuple[int, int]:
    """Memory in MB, and cores."""
    declared = declaration.resources
    return spec.memory_mb or declared.memory_mb, spec.cores or declared.cores


def _shares(spec: DeploymentSpec, declaration: Manifest) -> bool:
    memory_mb, cores = _resources(spec, declaration)
    resources = Resources(cores=cores, memory_mb=memory_mb)
    return isolation_with(declaration.mode, resources, spec.isolation or declaration.isolation) is Isolation.SHARED


def _keep_first(hosts: HostPool) -> None:
    """Its Python has the packages of a detector that declares none, so that jobs are forks of its process."""
    try:
        python = base_environment()
        hosts.first = python, _fingerprint(python)
    except LozengeError as error:
        logger().warning(f"no Spark host waits for the first detector: {error.message}", hint=error.hint)


def _fingerprint(python: Path) -> str:
    """That of the Spark in an environment. Raises SparkGone with what it says if it has none."""
    run = subprocess.run(
        [str(python), "-m", "lozenge.host.fingerprint"],
        env=in_environment(os.environ),
        capture_output=True,
        text=True,
        timeout=FINGERPRINT_SECONDS,
        check=False,
    )
    if run.returncode:
        raise SparkGone(f"reading the version of Spark in the environment of {python}: {run.stderr.strip()[-500:]}")
    return run.stdout.strip()
