"""Starts `python -m lozenge.host` as a process. Its folder has its log, its address and its temporary files."""

import math
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lozenge.host.address import FILE, LOG
from lozenge.process.detached import start_detached

TEMPORARY = "tmp"


@dataclass(frozen=True, slots=True)
class HostSize:
    """The task slots of a host's JVM and its heap. `new_mb` of it are the new generation; None leaves it to Java.

    `result_mb` is the largest result of a batch, of any client: Spark has one such limit for a JVM.
    """

    cores: int
    memory_mb: int
    result_mb: int
    new_mb: int | None = None


def host_arguments(folder: Path, size: HostSize, idle_seconds: float = math.inf, *, forks: bool = False) -> list[str]:
    """What a Python is given to be the host in `folder`; see `start_host`."""
    new = [] if size.new_mb is None else ["--new-mb", str(size.new_mb)]
    return [
        *("-m", "lozenge.host", str(folder), "--idle", f"{idle_seconds:g}"),
        *("--cores", str(size.cores), "--memory-mb", str(size.memory_mb), "--result-mb", str(size.result_mb)),
        *new,
        *(["--forks"] if forks else []),
    ]


def start_host(
    folder: Path,
    python: str,
    environment: Mapping[str, str],
    size: HostSize,
    idle_seconds: float,
    *,
    nice: int = 0,
    forks: bool = False,
) -> "subprocess.Popen[bytes]":
    """Starts a host that leads a session of its own; it listens once it has published its address in `folder`.

    It ends after so many seconds without a client. With `forks` it has a fork server for jobs. Raises OSError.
    """
    temporary = folder / TEMPORARY
    shutil.rmtree(temporary, ignore_errors=True)  # of a host that was killed
    temporary.mkdir(parents=True)
    (folder / FILE).unlink(missing_ok=True)
    command = [python, *host_arguments(folder, size, idle_seconds, forks=forks)]
    # a path of its starter is none of those who come later, each of whom sends its own to its workers
    variables = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    return start_detached(
        ["nice", "-n", str(nice), *command] if nice else command,
        log=folder / LOG,
        folder=temporary,
        environment=variables | {"TMPDIR": str(temporary)},
    )
