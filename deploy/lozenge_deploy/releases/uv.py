"""Running uv, and keeping what it makes in the user's cache."""

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from uv import find_uv_bin

from lozenge.errors import ToolchainError


def uv(doing: str, *arguments: str) -> None:
    """Runs uv; raises ToolchainError with uv's message."""
    command = [find_uv_bin(), *arguments, "--quiet", "--no-config", "--system-certs"]
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        raise ToolchainError(
            f"{doing}: {run.stderr.strip()}",
            hint="fix `dependencies` in the detector's pyproject.toml (the platform's own versions are fixed by "
            "requirements/runtime.txt), or look at the network; `make setup` repairs the tools",
        )


def uv_offline_first(doing: str, *arguments: str) -> None:
    """From uv's cache alone if everything is there: no network, no waiting."""
    with contextlib.suppress(ToolchainError):
        return uv(doing, *arguments, "--offline")
    return uv(doing, *arguments)


def made_once(home: Path, make: Callable[[Path], None], complete: Callable[[Path], bool] = Path.is_dir) -> Path:
    """`home`, a folder `<name>-<digest>` of the cache, made by `make` unless it is `complete`.

    It appears complete or not at all. Safe to call at once from several processes: one maker per name at a time.
    """
    if not complete(home):
        with _lock(home):
            if not complete(home):
                with tempfile.TemporaryDirectory(prefix=".new-", dir=home.parent) as made:
                    stage = Path(made, "stage")
                    make(stage)
                    shutil.rmtree(home, ignore_errors=True)
                    stage.rename(home)
    return home


@contextlib.contextmanager
def _lock(home: Path) -> Iterator[None]:
    """The system releases the lock of a process that dies."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f".{home.name.rpartition('-')[0]}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
