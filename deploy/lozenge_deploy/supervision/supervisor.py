"""Child processes that are watched and restarted when they exit."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lozenge_deploy.supervision.child import Child, last_error
from lozenge_deploy.supervision.temp_dirs import emptied

STOP_SECONDS = 30.0
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
SETTLED_SECONDS = 60.0
"""A process that ran this long is set up correctly: it is always restarted, and its next restart is quick again."""

USAGE = 2
"""The exit code of a usage or configuration error: a restart would only repeat it."""
FAILURE, FAILURES = 1, 3
"""The exit code of a failure, and how many in a row end the restarts of a process that never worked."""


class ProgramState(StrEnum):
    """The state of a supervised process. `ENDED` is a regular exit; after `FAILED` a person has to act."""

    RUNNING = "running"
    WAITING = "restarting"
    ENDED = "ended"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Program:
    """What to run. `environment` gives the variables of its n-th start, from 0; `finite`: code 0 is a good end."""

    name: str
    command: Sequence[str]
    environment: Callable[[int], Mapping[str, str]]
    folder: Path
    nice: int = 0
    finite: bool = False


class SupervisedProcess:
    """One program's process over all its restarts. Its log is `<logs>/<name>.log`, next to its temporary files."""

    def __init__(self, program: Program, logs: Path) -> None:
        self.program, self.log = program, logs / f"{program.name}.log"
        self._temporary = logs.absolute() / f"{program.name}.tmp"
        self.state = ProgramState.RUNNING
        self.starts = 0
        self.started_at = 0.0
        self.code: int | None = None
        self._again_at = 0.0
        self._wait = FIRST_WAIT
        self._failures = 0
        self._settled = False
        self._start()

    @property
    def pid(self) -> int:
        """The process id of the newest start."""
        return self._child.pid

    def watch(self) -> None:
        """Notices an exit, and restarts after the back-off; call it several times a second."""
        now = time.monotonic()
        if self.state is ProgramState.RUNNING and (code := self._child.poll()) is not None:
            self._child.end()
            self.code = code
            if now - self.started_at > SETTLED_SECONDS:
                self._wait, self._settled = FIRST_WAIT, True
            self._failures = self._failures + 1 if code == FAILURE and not self._settled else 0
            self.state = after_exit(code, finite=self.program.finite, failures=self._failures)
            self._again_at, self._wait = now + self._wait, min(2 * self._wait, LONGEST_WAIT)
        elif self.state is ProgramState.WAITING and now >= self._again_at:
            self._start()

    def terminate(self) -> None:
        """Asks it to stop. It stops its own children itself."""
        if self.state is ProgramState.RUNNING:
            self._child.terminate()

    def end(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for its exit after `terminate`, then kills what is left of its group."""
        self.code = self._child.end(timeout)
        if self.state in (ProgramState.RUNNING, ProgramState.WAITING):
            self.state = ProgramState.STOPPED

    def last_error(self) -> str:
        """The newest error in its log since its newest start, else the last line."""
        return last_error(self.log, self._log_start).message

    def _start(self) -> None:
        nice = ["nice", "-n", str(self.program.nice)] if self.program.nice else []
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._child = Child(
                [*nice, *self.program.command],
                environment={**self.program.environment(self.starts), **emptied(self._temporary)},
                folder=self.program.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.starts += 1
        self.started_at = time.monotonic()
        self.state = ProgramState.RUNNING


class Supervisor:
    """Starts, watches and stops children; used by one thread. Leaving its context stops all of them."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.children: dict[str, SupervisedProcess] = {}

    def __enter__(self) -> "Supervisor":
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(self.children)

    def start(self, program: Program) -> SupervisedProcess:
        """Starts a program; raises OSError if its command does not exist."""
        child = SupervisedProcess(program, self._logs)
        self.children[program.name] = child
        return child

    def end(self, name: str) -> SupervisedProcess:
        """Stops one child, as `stop` does, and removes it."""
        self.stop([name])
        return self.children.pop(name)

    def watch(self) -> None:
        """Watches every child once."""
        for child in self.children.values():
            child.watch()

    def stop(self, names: Iterable[str], *, timeout: float = STOP_SECONDS) -> None:
        """Asks all of them to stop, waits up to `timeout` seconds, then kills the rest."""
        children = [self.children[name] for name in names]
        for child in children:
            child.terminate()
        deadline = time.monotonic() + timeout
        for child in children:
            child.end(deadline - time.monotonic())


def after_exit(code: int, *, finite: bool, failures: int = 0) -> ProgramState:
    """The state after an unrequested exit, the `failures`-th failure in a row; a negative code is a signal's."""
    if code == 0 and finite:
        return ProgramState.ENDED
    return ProgramState.FAILED if code == USAGE or finite or failures >= FAILURES else ProgramState.WAITING
