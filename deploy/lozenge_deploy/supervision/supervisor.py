"""Child processes that are watched, started again when they die, and never left behind.

Every child leads a process group of its own: Ctrl-C in the terminal reaches only us, and what a child
starts (a JVM) ends with it. If this process dies, however, its children die too.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lozenge_deploy.supervision.temp_dirs import scratch

STOP_SECONDS = 30.0
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
SETTLED_SECONDS = 60.0
"""A child that ran this long works as it was set up: it is never given up, and next time waits briefly again."""

USAGE = 2
"""The exit code of a usage or configuration error: starting again would only repeat it."""
FAILURE, FAILURES = 1, 3
"""The exit code of a failure: after so many in a row of what has never worked, the next would be the same."""


class State(StrEnum):
    """Where a child stands. `ENDED` is its own good end, `FAILED` one that only a person can mend."""

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


class Child:
    """One program's process, over all its restarts. Output goes to `<logs>/<name>.log`, temporary files beside it."""

    def __init__(self, program: Program, logs: Path) -> None:
        self.program, self.log = program, logs / f"{program.name}.log"
        self._temporary = logs.absolute() / f"{program.name}.tmp"
        self.state = State.RUNNING
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
        return self._process.pid

    def watch(self) -> None:
        """Notices an exit and starts again when its time has come; call it several times a second."""
        now = time.monotonic()
        if self.state is State.RUNNING and (code := self._process.poll()) is not None:
            self._bury()
            self.code = code
            if now - self.started_at > SETTLED_SECONDS:
                self._wait, self._settled = FIRST_WAIT, True
            self._failures = self._failures + 1 if code == FAILURE and not self._settled else 0
            self.state = after_exit(code, finite=self.program.finite, failures=self._failures)
            self._again_at, self._wait = now + self._wait, min(2 * self._wait, LONGEST_WAIT)
        elif self.state is State.WAITING and now >= self._again_at:
            self._start()

    def terminate(self) -> None:
        """Asks it to end; what it started is its own to stop."""
        if self.state is State.RUNNING:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def end(self, timeout: float) -> None:
        """Waits for its end after `terminate`, and kills whatever of its group remains after `timeout` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.code = self._process.wait(max(0.0, timeout))
        self._bury()
        if self.state in (State.RUNNING, State.WAITING):
            self.state = State.STOPPED

    def last_words(self) -> str:
        """The last line of its log: the error of a line in JSON, else the line itself."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 4096))
            lines = log.read().decode(errors="replace").strip().splitlines()
        line = lines[-1] if lines else ""
        try:
            said = json.loads(line)
            return str(said.get("error") or said["event"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return line

    def _start(self) -> None:
        nice = ["nice", "-n", str(self.program.nice)] if self.program.nice else []
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*nice, *self.program.command],
                env={**self.program.environment(self.starts), **scratch(self._temporary)},
                cwd=self.program.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # not a session: Linux weighs sessions against each other, whatever is nice in them
            )
        self._leash = leash(self._process.pid)
        self.starts += 1
        self.started_at = time.monotonic()
        self.state = State.RUNNING

    def _bury(self) -> None:
        """Nothing of the group outlives its leader, and the leash has nobody left to hold."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._leash.kill()
        self._leash.wait()
        if self._leash.stdin:
            self._leash.stdin.close()


class Supervisor:
    """Starts, watches and stops children; used by one thread. Leaving its context stops all of them."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.children: dict[str, Child] = {}

    def __enter__(self) -> "Supervisor":
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(self.children)

    def start(self, program: Program) -> Child:
        """Starts a program, at once; raises OSError if its command does not exist."""
        child = Child(program, self._logs)
        self.children[program.name] = child
        return child

    def end(self, name: str) -> Child:
        """Stops one child, as `stop` does, and forgets it."""
        self.stop([name])
        return self.children.pop(name)

    def watch(self) -> None:
        """Looks after every child once."""
        for child in self.children.values():
            child.watch()

    def stop(self, names: Iterable[str], *, timeout: float = STOP_SECONDS) -> None:
        """Asks all of them at once, waits up to `timeout` seconds, then kills."""
        children = [self.children[name] for name in names]
        for child in children:
            child.terminate()
        deadline = time.monotonic() + timeout
        for child in children:
            child.end(deadline - time.monotonic())


def after_exit(code: int, *, finite: bool, failures: int = 0) -> State:
    """What follows from an exit code (negative: killed by that signal) nobody asked for, the `failures`-th in a row."""
    if code == 0 and finite:
        return State.ENDED
    return State.FAILED if code == USAGE or finite or failures >= FAILURES else State.WAITING


def leash(pid: int) -> subprocess.Popen[bytes]:
    """A shell that kills the process group `pid` as soon as this process is gone: then the pipe it reads ends."""
    script = ["sh", "-c", 'read -r _; kill -s KILL -- "-$1"', "leash", str(pid)]
    return subprocess.Popen(script, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)
