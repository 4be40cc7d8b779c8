"""A job as a process of this machine, with everything about it in one folder.

Any process that reads the folder can manage the job, which does not depend on the one that started it. A shell leads
the process group and writes the exit code into the folder, so that a later agent knows it. The shell waits until the
start is recorded: if the starter dies before that, the shell exits and no job runs that is not recorded.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from lozenge.errors import ConfigError
from lozenge.process.detached import last_error
from lozenge.process.usage import counted
from lozenge.protocol.job_spec import JobSpec, read_job_spec
from lozenge.protocol.job_status import JOB_STATUS, JobStatus, read_job_status
from lozenge_deploy.supervision.processes import NICE, known_process, raise_priority
from lozenge_deploy.supervision.recorded_process import ProcessRecord, RecordedProcess, recorded
from lozenge_deploy.supervision.temp_dirs import emptied

LOG, EXIT, TEMPORARY = "log", "exit", "tmp"
_SCRIPT = 'read -r _ || exit; "$@" >>log 2>&1 </dev/null; echo $? >exit.new && mv exit.new exit'
GROUP_GRACE_SECONDS = 5.0
"""How long the rest of a job's group may run after its leader: a JVM cleans up."""


class StartRecord(ProcessRecord, frozen=True, kw_only=True):
    """The leader of the job's group, and what it was started as.

    `spark_host` is the Spark host whose JVM it uses, with its `weight` there; "" if its JVM is its own.
    """

    detector: str
    release: str
    process: list[object]
    generation: int
    state: str
    memory_mb: int
    spark_host: str = ""
    weight: int = 0


class JobProcess:
    """The job in `folder`. It decides nothing; it starts, stops and observes."""

    def __init__(self, folder: Path, started: RecordedProcess[StartRecord] | None = None) -> None:
        """Raises OSError or msgspec.DecodeError if `folder` has no record of a start."""
        self.folder = folder
        self._leader = started or RecordedProcess(folder, StartRecord)
        self.record = self._leader.record
        self._leaderless_since: float | None = None
        self._stopping_since: float | None = None
        self.kill_reason = ""
        """Why it was killed, which its log cannot say; "" if it was not."""

    @classmethod
    def start(
        cls,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        spec: JobSpec,
        *,
        detector: str,
        release: str,
        process: Sequence[object],
        state: str,
        memory_mb: int,
        spark_host: str = "",
        weight: int = 0,
    ) -> "JobProcess":
        """Starts `command` in `folder`, which may hold files of an earlier process; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in (EXIT, JOB_STATUS):
            (folder / earlier).unlink(missing_ok=True)
        spec.write(folder)
        leader = subprocess.Popen(
            ["nice", "-n", str(NICE), "sh", "-c", _SCRIPT, "job", *command],
            cwd=folder,
            env={**environment, **emptied(folder / TEMPORARY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert leader.stdin is not None
        with leader.stdin as gate:
            started = RecordedProcess.of_child(
                folder,
                leader,
                lambda pid, created: StartRecord(
                    detector=detector,
                    release=release,
                    process=list(process),
                    generation=spec.generation,
                    state=state,
                    memory_mb=memory_mb,
                    pid=pid,
                    created=created,
                    started_at=time.time(),
                    spark_host=spark_host,
                    weight=weight,
                ),
            )
            gate.write(b"\n")
        return cls(folder, started)

    def matches(self, process: Sequence[object]) -> bool:
        """Whether it was started as `process`; then it needs no restart to fulfil the spec."""
        return self.record.process == list(process)

    def alive(self) -> bool:
        """Whether any process of its group runs. Orphans of its leader are killed after some seconds."""
        if self._leader.runs():
            return True
        if not self._has_orphans():
            return False
        self._leaderless_since = self._leaderless_since or time.monotonic()
        if time.monotonic() - self._leaderless_since > GROUP_GRACE_SECONDS:
            self.kill()
        return True

    def exit_code(self) -> int | None:
        """The exit code of its job; None if it was not recorded, because the whole group was killed."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / EXIT).read_text())
        return None

    def status(self) -> JobStatus | None:
        """The newest status of its job; None before the first."""
        return read_job_status(self.folder)

    def spec(self) -> JobSpec | None:
        """The newest spec that its job was sent; None if it cannot be read."""
        with contextlib.suppress(ConfigError):
            return read_job_spec(self.folder)
        return None

    def send(self, spec: JobSpec) -> None:
        """Sends its job a new spec."""
        spec.write(self.folder)

    def raise_priority(self) -> None:
        """Sets the nice value of all its processes to 0, if the system permits it."""
        self._leader.raise_priority()
        if (job := _process_of(self.status())) is not None:
            raise_priority(job.pid)  # a fork leads a group of its own

    def memory_bytes(self) -> int:
        """Resident memory of all its processes."""
        total = 0
        with contextlib.suppress(psutil.Error):
            found = self._leader.process.children(recursive=True) if self._leader.process else []
            if found and (job := _process_of(self.status())) is not None and job not in found:
                found.append(job)
            for process in counted(found):
                with contextlib.suppress(psutil.Error):
                    total += process.memory_info().rss
        return total

    def terminate(self) -> None:
        """Asks its job to stop at a batch boundary; a second call does nothing."""
        if self._stopping_since is not None:
            return
        self._stopping_since = time.monotonic()
        if (status := self.status()) is None:
            self.kill()  # it has not begun to work
        elif (job := _process_of(status)) is not None:
            with contextlib.suppress(psutil.Error):
                job.terminate()

    def kill(self) -> None:
        """Kills all of its processes."""
        self._stopping_since = self._stopping_since or time.monotonic()
        if self._leader.runs() or self._has_orphans():
            self._leader.kill_group()

    def stopping_seconds(self) -> float:
        """Seconds since the first `terminate` or `kill`; 0 before."""
        return time.monotonic() - self._stopping_since if self._stopping_since is not None else 0.0

    def last_error(self) -> str:
        """Why it ended, as far as its log says."""
        return last_error(self.folder / LOG).message

    def _has_orphans(self) -> bool:
        """Whether its group runs without its leader. A later group with the same id has another working folder."""
        try:
            os.killpg(self.record.pid, 0)
        except OSError:
            return False
        return any(_of_group(pid, self.record.pid) and _works_in(pid, self.folder) for pid in psutil.pids())


def job_processes(folder: Path) -> list[JobProcess]:
    """Every job process below the folder of a detector, the newest generation first."""
    return sorted(recorded(folder, JobProcess), key=lambda process: process.record.generation, reverse=True)


def newest_generation(jobs: Sequence[JobProcess]) -> int:
    """The newest generation of a start or a spec among `jobs`; 0 if there is none."""
    started = [job.record.generation for job in jobs]
    return max([0, *started, *(spec.generation for job in jobs if (spec := job.spec()) is not None)])


def _process_of(status: JobStatus | None) -> psutil.Process | None:
    """The process of a job: below the leader, or a fork of a Spark host's fork server; None if it has ended."""
    return known_process(status.pid, status.created) if status is not None else None


def _of_group(pid: int, group: int) -> bool:
    with contextlib.suppress(OSError):
        return os.getpgid(pid) == group
    return False


def _works_in(pid: int, folder: Path) -> bool:
    with contextlib.suppress(psutil.Error, OSError):  # a zombie has no working folder
        return Path(psutil.Process(pid).cwd()) == folder.resolve()
    return False
