"""A process that outlives its starter, with a record in its folder: any process that reads that can manage it."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import psutil

from lozenge.process.atomic_write import replace
from lozenge_deploy.supervision.child import kill_group
from lozenge_deploy.supervision.processes import known_process, raise_priority, runs

RECORD = "process.json"


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was started. `created`, its start time, distinguishes it from a later process with its pid."""

    pid: int
    created: float
    started_at: float


R = TypeVar("R", bound=ProcessRecord)
P = TypeVar("P")


class RecordedProcess(Generic[R]):
    """The process of the record in `folder`, which leads a process group."""

    def __init__(self, folder: Path, kind: type[R], child: "subprocess.Popen[bytes] | None" = None) -> None:
        """`child` is given by its starter, which has to reap it. Raises OSError or msgspec.DecodeError."""
        self.record = msgspec.json.decode((folder / RECORD).read_bytes(), type=kind)
        self.process = known_process(self.record.pid, self.record.created)
        self._child = child

    @classmethod
    def of_child(
        cls, folder: Path, child: "subprocess.Popen[bytes]", record: Callable[[int, float], R]
    ) -> "RecordedProcess[R]":
        """Writes the record of a child that has just started, which `record` makes of its pid and its start time."""
        made = record(child.pid, psutil.Process(child.pid).create_time())
        replace(folder / RECORD, msgspec.json.encode(made).decode())
        return cls(folder, type(made), child)

    def runs(self) -> bool:
        """Whether it runs; one that has exited is reaped."""
        running = self.process is not None and runs(self.process)
        if self._child is not None:
            self._child.poll()  # after the check: a process that was seen to have exited always is reaped
        if not running:
            self.process = None
        return running

    def terminate(self) -> None:
        """Sends it SIGTERM, if it runs."""
        if self.process is not None:
            with contextlib.suppress(psutil.Error):
                self.process.terminate()

    def kill_group(self, reap_seconds: float = 0.0) -> None:
        """Kills all processes of its group; waits up to `reap_seconds` for the end of a child."""
        kill_group(self.record.pid)
        if self._child is not None and reap_seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(reap_seconds)

    def raise_priority(self) -> None:
        """Sets the nice value of its group to 0, if the system permits it."""
        raise_priority(self.record.pid)


def recorded(folder: Path, opened: Callable[[Path], P]) -> list[P]:
    """What `opened` makes of each folder below `folder` that has a record."""
    found = []
    for each in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(opened(each))
    return found
