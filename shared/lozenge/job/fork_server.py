"""`python -m lozenge.job.fork_server FOLDER HOST`: forks jobs from one process that has imported what all of them need.

FOLDER is that of a Spark host, and HOST its process id. This is its child, and ends with it. Python objects of the
imports are shared by all forks until one of them writes there, and an import that is done takes no time. It answers a
job of an environment with the same packages as its own, and refuses others, which then import for themselves. A fork
has the job's arguments, variables, folder, paths, nice value and standard streams, a process group of its own, and
nothing of the server's. When the connection of the job ends, the server kills the fork; when a fork ends, the job
receives its exit code.
"""

import contextlib
import ctypes
import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import NoReturn

import msgspec
from setproctitle import setproctitle, setthreadtitle

from lozenge.host.address import receive_line
from lozenge.host.base_packages import base_packages
from lozenge.host.log_attribution import APP
from lozenge.job.fork_client import SOCKET
from lozenge.job.service import main
from lozenge.process import logging
from lozenge.process.shutdown import end

PRELOADED = (
    "lozenge.host.client",
    "lozenge.job.lifecycle.job_factory",
    "lozenge.job.lifecycle.job_loop",
    "lozenge.spark.conf",
    "lozenge.spark.session_provider",
    "pandas",
    "pyarrow.pandas_compat",
    "pyspark.sql.pandas.types",
    "pyspark.testing.utils",
)
"""What a job imports only once it needs it, which every job on a host does."""
_REQUEST_SECONDS = 5.0
_POLL_SECONDS = 1.0
_LARGEST_REQUEST = 64 * 1024 * 1024
"""Bytes: the variables of a process may take megabytes."""
_PR_SET_PDEATHSIG = 1


class ForkRequest(msgspec.Struct, frozen=True):
    """What the process that was started as a job is made of (see `fork_client`)."""

    base: str
    argv: list[str]
    path: list[str]
    prefixes: tuple[str, str, str]
    variables: dict[str, str]
    folder: str
    nice: int


class ForkServer:
    """Listens in `folder`, for environments like the one of this process. Used by one thread, the only one."""

    def __init__(self, folder: Path, parent: int) -> None:
        self._parent = parent
        self._selector = selectors.DefaultSelector()
        self._forks: dict[int, socket.socket] = {}
        self._woken, self._waker = socket.socketpair()
        os.chdir(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(SOCKET)
        self._listener.listen(64)
        for each in (self._woken, self._waker, self._listener):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # it wakes the selector
        signal.set_wakeup_fd(self._waker.fileno())
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until the host is gone; the forks end with this process."""
        while os.getppid() == self._parent:
            for key, _ in self._selector.select(_POLL_SECONDS):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                else:
                    self._lease_ended(key.data)
            self._reap()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            try:
                connection.settimeout(_REQUEST_SECONDS)
                _, streams, _, _ = socket.recv_fds(connection, 1, 3)
                try:
                    self._fork(
                        connection,
                        msgspec.json.decode(receive_line(connection, _LARGEST_REQUEST), type=ForkRequest),
                        streams,
                    )
                finally:
                    for stream in streams:
                        os.close(stream)
            except (OSError, ValueError, msgspec.MsgspecError) as error:  # nobody of ours, or it has ended
                logging.logger().warning(f"a request to fork a job: {type(error).__name__}: {error}")
                connection.close()

    def _fork(self, connection: socket.socket, request: ForkRequest, streams: Sequence[int]) -> None:
        if request.base != base_packages():
            connection.sendall(b"0\n")
            connection.close()
            return
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._leave(connection)
                _become(request, streams, server)
            finally:
                os._exit(1)
        self._forks[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        connection.sendall(f"{pid}\n".encode())
        logging.logger().info("forked a job", pid=pid, arguments=request.argv[1:])

    def _leave(self, connection: socket.socket) -> None:
        """Closes in a fork what belongs to the server: an open copy of a connection would hide its end."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listener, self._woken, self._waker, connection, *self._forks.values()):
            each.close()

    def _lease_ended(self, pid: int) -> None:
        """The job's shell is gone, or says what it never does."""
        self._forget(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                code = os.waitstatus_to_exitcode(status)
                if pid in self._forks:
                    with contextlib.suppress(OSError):
                        self._forks[pid].sendall(b"%d\n" % (code if code >= 0 else 128 - code))
                    self._forget(pid)

    def _forget(self, pid: int) -> None:
        if (connection := self._forks.pop(pid, None)) is not None:
            self._selector.unregister(connection)
            connection.close()


def _become(request: ForkRequest, streams: Sequence[int], server: int) -> NoReturn:
    """Makes this fork the process that has sent the request, and runs the job."""
    os.setpgid(0, 0)
    _die_with(server)
    with contextlib.suppress(PermissionError):  # a lower one than the host's is not permitted to everybody
        os.setpriority(os.PRIO_PROCESS, 0, request.nice)  # threads that it starts inherit it
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    _show_as(request)
    os.environ.clear()
    os.environ.update(request.variables)
    time.tzset()
    os.chdir(request.folder)
    sys.argv[:], sys.path[:] = request.argv, request.path
    sys.prefix, sys.exec_prefix, sys.executable = request.prefixes
    sys.path_importer_cache.clear()
    invalidate_caches()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()  # else all forks would draw the same numbers
    end(main())


def _show_as(request: ForkRequest) -> None:
    """Names this process in `ps` and `top`, which would show the command of the server.

    The title is written where the variables were at the start, so it comes before they change.
    """
    detector = [Path(given).name for given in request.argv[1:2]]
    name = " ".join([*detector, request.variables.get("LOZENGE_JOB_RELEASE", "")]).strip()
    setproctitle(f"lozenge job {name}")
    setthreadtitle(name)  # `top` shows 15 characters


def _die_with(server: int) -> None:
    """The kernel kills this process once its parent has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it ended just before
        os._exit(1)


def preload() -> None:
    """Imports what every job needs. What is there afterwards is no garbage: a collection would write to all of it."""
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()


def serve(folder: Path, host: int) -> None:
    """Until the host that has started it is gone, which it may be before the imports are done."""
    logging.configure(APP)
    preload()
    ForkServer(folder, host).serve()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
