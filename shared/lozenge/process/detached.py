"""A process that outlives its starter: it leads a session of its own, and writes to a log."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_detached(
    command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Starts `command` in `folder`; what it prints is appended to `log`. Raises OSError."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
