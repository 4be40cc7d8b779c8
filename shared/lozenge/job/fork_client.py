"""Lets a fork of the fork server next to a Spark host run this job, and represents it.

It imports nothing that takes long. The fork is no child of this process, which becomes a shell of a megabyte: it passes
SIGTERM and SIGINT on and ends with the fork's exit code. The connection is the lease: the fork is killed when it ends.
"""

import json
import os
import socket
import sys

from lozenge.host.address import receive_line
from lozenge.host.base_packages import base_packages
from lozenge.protocol.job_status import HOST_GONE

SOCKET = "fork.sock"
"""The socket of the fork server, in the folder of its host."""
_SECONDS = 10.0
_LEASE = 3
_WAIT = """
trap 'asked=1; kill -TERM "$1" 2>/dev/null' TERM
trap 'asked=1; kill -INT "$1" 2>/dev/null' INT
until asked=; read -r code <&3; do
    [ -n "$asked" ] || { printf '{"time": "%s", %s\\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "${2#?}" >&2; exit "$3"; }
done
exit "$code"
"""


def run_forked() -> None:
    """Becomes the shell that represents a fork, or returns: without a host, a fork server or the same packages."""
    folder, mine = os.environ.get("LOZENGE_JOB_HOST"), base_packages()
    if not folder or not mine:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(_SECONDS)
            _connect(connection, folder)
            request = {
                "base": mine,
                "argv": sys.argv,
                "path": sys.path,
                "prefixes": [sys.prefix, sys.exec_prefix, sys.executable],
                "variables": dict(os.environ),
                "folder": os.getcwd(),
                "nice": os.getpriority(os.PRIO_PROCESS, 0),
            }
            socket.send_fds(connection, [b"\0"], [0, 1, 2])
            connection.sendall(json.dumps(request).encode() + b"\n")
            pid = int(receive_line(connection))
        except (OSError, ValueError):  # no fork server, or one that is ending: this process runs the job
            return
        if not pid:
            return
        connection.setblocking(True)
        os.dup2(connection.fileno(), _LEASE)
        os.set_inheritable(_LEASE, True)  # it may have been that number already
        lost = f"the process that the job in {folder} was forked from has ended"
        text = json.dumps({"level": "error", "event": lost, "hint": "a restart takes another Spark host"})
        os.execvp("sh", ["sh", "-c", _WAIT, "lozenge.job", str(pid), text, str(HOST_GONE)])


def _connect(connection: socket.socket, folder: str) -> None:
    """By the name within the folder: the path of a socket may have some hundred characters only."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        connection.connect(SOCKET)
    finally:
        os.fchdir(here)
        os.close(here)
