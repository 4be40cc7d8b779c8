"""A Spark host as a process of this machine, with everything about it in one folder.

As a job, it does not depend on the process that started it: the next agent finds it in its folder.
"""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import psutil

from lozenge.host.address import FILE, LOG, HostAddress, attend, published_by
from lozenge.host.process import TEMPORARY, HostSize, start_host
from lozenge.process.detached import last_error
from lozenge_deploy.supervision.processes import NICE, runs
from lozenge_deploy.supervision.recorded_process import RECORD, ProcessRecord, RecordedProcess, recorded

HOSTS = ".hosts"
"""The folder of all hosts, next to those of the detectors, none of which has such a name."""
KILL_SECONDS = 1.0
IDLE_SECONDS = 900.0
"""A host that no agent attends to, because none runs, ends by itself after so long without a client."""


class HostRecord(ProcessRecord, frozen=True, kw_only=True):
    """The host's process, and what it was started as. `python` has started it; "" if an older agent did."""

    fingerprint: str
    python: str = ""


class HostProcess:
    """The host in `folder`. It decides nothing; it starts, ends and observes."""

    def __init__(self, folder: Path, started: RecordedProcess[HostRecord] | None = None) -> None:
        """Raises OSError or msgspec.DecodeError if `folder` has no record of a start."""
        self.folder = folder
        self._process = started or RecordedProcess(folder, HostRecord)
        self.record = self._process.record
        self._address: HostAddress | None = None
        self._java: psutil.Process | None = None

    @classmethod
    def start(
        cls, folder: Path, python: Path, environment: Mapping[str, str], size: HostSize, fingerprint: str, now: float
    ) -> "HostProcess":
        """Starts a host in `folder`, which must not exist, at `now` in Unix seconds; raises OSError."""
        folder.mkdir(parents=True, mode=0o700)
        child = start_host(folder, str(python), environment, size, IDLE_SECONDS, nice=NICE, forks=True)
        started = RecordedProcess.of_child(
            folder,
            child,
            lambda pid, created: HostRecord(
                pid=pid, created=created, started_at=now, fingerprint=fingerprint, python=str(python)
            ),
        )
        return cls(folder, started)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def log(self) -> Path:
        return self.folder / LOG

    def alive(self) -> bool:
        """Whether it and, once it listens, its JVM run."""
        return self._process.runs() and (self._java is None or runs(self._java))

    def ready(self) -> bool:
        """Whether it listens."""
        if self._address is None and (found := published_by(self.folder, self.record.pid)) is not None:
            self._address = found
            with contextlib.suppress(psutil.Error):
                self._java = psutil.Process(found.jvm_pid)
            self._process.raise_priority()
        return self._address is not None

    def attend(self) -> None:
        """Lets it wait for clients, as long as this is called."""
        attend(self.folder)

    def terminate(self) -> None:
        """Asks it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """Kills all of its processes."""
        self._process.kill_group(KILL_SECONDS)

    def discard(self) -> None:
        """Removes all of a host that has ended but its log, which is no host's from then on (see `host_logs`)."""
        shutil.rmtree(self.folder / TEMPORARY, ignore_errors=True)
        for name in (FILE, RECORD):
            (self.folder / name).unlink(missing_ok=True)

    def last_words(self) -> str:
        """What its log says last: the newest error, else the last line."""
        return f"its log says last: {last_error(self.log).message or 'nothing'}"


def host_processes(folder: Path) -> list[HostProcess]:
    """Every host below `folder` that was started, whether it runs or not."""
    return recorded(folder, HostProcess)


def host_logs(folder: Path) -> dict[Path, bool]:
    """The log of each host below `folder`, and whether that has ended; then its folder has nothing else."""
    found = folder.iterdir() if folder.is_dir() else ()
    return {host / LOG: not (host / RECORD).exists() for host in found if host.is_dir() and host.name[1:].isdigit()}
