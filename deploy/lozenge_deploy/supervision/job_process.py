"""One job as a process of this machine, in a folder that says all about it.

Whoever reads the folder can take it over: the process does not hang on the one that started it. A shell leads the
process group and writes down the exit code, so that it is known to an agent that came later. The shell begins only
once its facts are written: if its starter dies before, it ends, and nothing runs that no folder tells of.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from lozenge.errors import ConfigError
from lozenge.process.atomic_write import replace
from lozenge.process.usage import counted
from lozenge.protocol.job_spec import JobSpec, read_job_spec
from lozenge.protocol.job_status import JOB_STATUS, JobStatus, read_job_status
from lozenge_deploy.supervision.temp_dirs import scratch

LOG, EXIT, FACTS, TEMPORARY = "log", "exit", "instance.json", "tmp"
_SCRIPT = 'read -r _ || exit; "$@" >>log 2>&1 </dev/null; echo $? >exit.new && mv exit.new exit'
NICE = 10
"""A JVM that starts must not slow down the jobs that run; a live one is as important as they are."""
CLOCK_SECONDS = 2.0
"""The start times of one process that two looks give differ by less, though the clock may be set between them."""
REST_SECONDS = 5.0
"""What a job leaves behind has so long to end by itself: a JVM tidies up."""


class Facts(msgspec.Struct, frozen=True):
    """What was started: `created` is the leader's start time, which tells it from a later process of its number."""

    detector: str
    release: str
    process: list[object]
    generation: int
    state: str
    memory_mb: int
    pid: int
    created: float
    started_at: float


class Instance:
    """A job in `folder`; starting and stopping are the only things that it does by itself."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError or msgspec.DecodeError if there is no instance in `folder`."""
        self.folder = folder
        self.facts = msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)
        self._leader = _process(self.facts.pid, self.facts.created)
        self._child: subprocess.Popen[bytes] | None = None
        self._leaderless_since: float | None = None
        self._told_to_stop_at: float | None = None
        self.ended_for = ""
        """Why it was killed, of which its own words can say nothing; "" if it was not."""

    @classmethod
    def start(
        cls,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        order: JobSpec,
        *,
        detector: str,
        release: str,
        process: Sequence[object],
        state: str,
        memory_mb: int,
    ) -> "Instance":
        """Starts `command` in `folder`, which may hold what an earlier process of it left; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for left in (EXIT, JOB_STATUS):
            (folder / left).unlink(missing_ok=True)
        order.write(folder)
        leader = subprocess.Popen(
            ["nice", "-n", str(NICE), "sh", "-c", _SCRIPT, "job", *command],
            cwd=folder,
            env={**environment, **scratch(folder / TEMPORARY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert leader.stdin is not None
        with leader.stdin as gate:
            facts = Facts(
                detector=detector,
                release=release,
                process=list(process),
                generation=order.generation,
                state=state,
                memory_mb=memory_mb,
                pid=leader.pid,
                created=psutil.Process(leader.pid).create_time(),
                started_at=time.time(),
            )
            replace(folder / FACTS, msgspec.json.encode(facts).decode())
            started = cls(folder)
            started._child = leader
            gate.write(b"\n")
        return started

    def fits(self, process: Sequence[object]) -> bool:
        """Whether it is such a process, which need not be started anew to be as desired."""
        return self.facts.process == list(process)

    def alive(self) -> bool:
        """Whether any process of it is left. What its leader leaves behind is killed in the end."""
        running = self._leader is not None and _runs(self._leader)
        if self._child is not None:
            self._child.poll()  # reaps it; after the look, so that one that was seen to have ended always is
        if running:
            return True
        self._leader = None
        if not self._rest():
            return False
        self._leaderless_since = self._leaderless_since or time.monotonic()
        if time.monotonic() - self._leaderless_since > REST_SECONDS:
            self.kill()
        return True

    def exit_code(self) -> int | None:
        """How its job ended; None if nobody wrote it down: the whole group was killed."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / EXIT).read_text())
        return None

    def report(self) -> JobStatus | None:
        """The newest report of its job; None if it has not told anything yet."""
        return read_job_status(self.folder)

    def ordered(self) -> JobSpec | None:
        """What its job was told last; None if that cannot be read."""
        with contextlib.suppress(ConfigError):
            return read_job_spec(self.folder)
        return None

    def order(self, order: JobSpec) -> None:
        """Tells its job what to be."""
        order.write(self.folder)

    def raise_priority(self) -> None:
        """Ends its being nice, where the system lets us."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, self.facts.pid, 0)

    def memory_bytes(self) -> int:
        """Resident memory of all its processes."""
        total = 0
        with contextlib.suppress(psutil.Error):
            for process in counted(self._leader.children(recursive=True)) if self._leader else ():
                with contextlib.suppress(psutil.Error):
                    total += process.memory_info().rss
        return total

    def terminate(self) -> None:
        """Asks its job to end at a batch boundary; a second call does nothing more."""
        if self._told_to_stop_at is not None:
            return
        self._told_to_stop_at = time.monotonic()
        if (report := self.report()) is None:
            self.kill()  # it has not begun to work
        elif (job := _process(report.pid, report.created)) is not None:
            with contextlib.suppress(psutil.Error):
                job.terminate()

    def kill(self) -> None:
        """Ends all of its processes at once."""
        self._told_to_stop_at = self._told_to_stop_at or time.monotonic()
        if (self._leader is not None and _runs(self._leader)) or self._rest():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.facts.pid, signal.SIGKILL)

    def stopping_for(self) -> float:
        """Seconds since it was told to end or killed; 0 if it was not."""
        return time.monotonic() - self._told_to_stop_at if self._told_to_stop_at is not None else 0.0

    def last_words(self) -> str:
        """Why it ended, as far as its log says: its own newest error, else the JVM's, else the last line."""
        of_jvm = ""
        with contextlib.suppress(OSError), (self.folder / LOG).open("rb") as log:
            log.seek(max(0, (self.folder / LOG).stat().st_size - 16_384))
            lines = log.read().decode(errors="replace").strip().splitlines()
            for line in reversed(lines):
                with contextlib.suppress(ValueError, KeyError, AttributeError):
                    said = json.loads(line)
                    if said.get("level") not in ("error", "critical"):
                        continue
                    if "logger" not in said:
                        return str(said["event"])
                    of_jvm = of_jvm or str(said["event"])
            if of_jvm:
                return of_jvm
            with contextlib.suppress(ValueError, LookupError, TypeError):
                return str(json.loads(lines[-1])["event"])
            return lines[-1] if lines else ""
        return ""

    def _rest(self) -> bool:
        """Whether its group lives on without its leader; a later group of the same number works elsewhere."""
        try:
            os.killpg(self.facts.pid, 0)
        except OSError:
            return False
        return any(_of_group(pid, self.facts.pid) and _works_in(pid, self.folder) for pid in psutil.pids())


def instances(folder: Path) -> list[Instance]:
    """Every instance below the folder of a detector, the newest generation first."""
    found = []
    for place in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(Instance(place))
    return sorted(found, key=lambda instance: instance.facts.generation, reverse=True)


def newest_generation(folder: Path) -> int:
    """The newest that an instance below the folder of a detector was started or ordered as; 0 if there is none."""
    here = instances(folder)
    started = [instance.facts.generation for instance in here]
    return max([0, *started, *(order.generation for i in here if (order := i.ordered()) is not None)])


def _process(pid: int, created: float) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return process if abs(process.create_time() - created) < CLOCK_SECONDS else None
    return None


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _of_group(pid: int, group: int) -> bool:
    with contextlib.suppress(OSError):
        return os.getpgid(pid) == group
    return False


def _works_in(pid: int, folder: Path) -> bool:
    with contextlib.suppress(psutil.Error, OSError):  # a zombie works nowhere
        return Path(psutil.Process(pid).cwd()) == folder.resolve()
    return False
