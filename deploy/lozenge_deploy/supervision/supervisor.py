"""Child processes that are watched and restarted when they exit."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lozenge.process.detached import last_error
from lozenge_deploy.supervision.child import Child
from lozenge_deploy.supervision.restart_policy import ProgramState, RestartPolicy
from lozenge_deploy.supervision.temp_dirs import emptied

STOP_SECONDS = 30.0


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
        self._restarts = RestartPolicy(finite=program.finite)
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
            self.state = self._restarts.exited(code, self.started_at, now)
        elif self.state is ProgramState.WAITING and self._restarts.is_due(now):
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
