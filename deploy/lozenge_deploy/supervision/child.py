"""A child process that leads a process group: it ends with its parent, and nothing of its group outlives it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


class Child:
    """A running process. Ctrl-C in the terminal reaches only its parent, which then stops it in order.

    When the parent dies, however that happens, the whole group is killed: a shell, the leash, reads a pipe that the
    parent holds open.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        stdout: int | IO[bytes] | IO[str] | None = None,
        stderr: int | IO[bytes] | IO[str] | None = None,
        pass_fds: Sequence[int] = (),
        own_session: bool = False,
    ) -> None:
        """Starts it; raises OSError if the command does not exist.

        A process is not given a session of its own unless it asks: Linux divides the processor between sessions
        first, and a nice value counts only within one.
        """
        self._process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            process_group=None if own_session else 0,
            start_new_session=own_session,
        )
        self._leash = leash(self._process.pid)

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group."""
        return self._process.pid

    @property
    def stdout(self) -> IO[bytes]:
        """Its output, if it was started with a pipe."""
        assert self._process.stdout is not None
        return self._process.stdout

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def wait(self, limit: float | None = None) -> int:
        """Waits for its exit code; raises TimeoutExpired after `limit` seconds."""
        return self._process.wait(limit)

    def terminate(self) -> None:
        """Asks it to stop. It stops its own children itself."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def end(self, grace: float = 0.0) -> int:
        """Waits up to `grace` seconds for its exit, then kills what is left of the group; its exit code.

        A second call changes nothing.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, grace))
        kill_group(self.pid)
        code = self._process.wait()
        self._leash.kill()
        self._leash.wait()
        for pipe in (self._leash.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code


def kill_group(pid: int) -> None:
    """Kills the processes of the group that `pid` leads or led, if there are any."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def leash(pid: int) -> subprocess.Popen[bytes]:
    """A shell that kills the process group `pid` as soon as this process is gone: then the pipe it reads ends."""
    script = ["sh", "-c", 'read -r _; kill -s KILL -- "-$1"', "leash", str(pid)]
    return subprocess.Popen(script, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)
