"""Running uv, and keeping what it makes in the user's cache."""

import contextlib
import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from uv import find_uv_bin

from lozenge.errors import ToolchainError

_NETWORK = "look at the network and at the index, then run the same command again"
_BUILD = "change what it names in pyproject.toml; `lozenge check` finds most of it without a build"
_RESOLUTION = (
    "change `dependencies` in the detector's pyproject.toml; requirements/runtime.txt has the platform's own versions, "
    "and a package of yours comes from an index (UV_INDEX) or a folder of wheels (UV_FIND_LINKS)"
)
_HINTS = (
    ("Failed to fetch|error sending request|dns error|Could not connect", _NETWORK),
    ("The build backend returned", _BUILD),
    ("No solution found|unsatisfiable|--require-hashes", _RESOLUTION),
)


def uv(doing: str, *arguments: str) -> None:
    """Runs uv; raises ToolchainError with its message, or with that of the build back end that it has run."""
    quiet = () if arguments[0] == "build" else ("--quiet",)  # which hides the back end's words
    command = [find_uv_bin(), *arguments, *quiet, "--no-config", "--system-certs"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if run.returncode:
        found = (hint for pattern, hint in _HINTS if re.search(pattern, run.stderr))
        raise ToolchainError(f"{doing}: {words(run.stderr)}", hint=next(found, "`make setup` repairs the tools"))


def words(output: str) -> str:
    """What uv says in `output`; if a build back end raised an error, the words of this error alone."""
    before, _, _ = output.partition("\nerror: ")
    trace, found, _ = before.rpartition("\n  ")
    if "Traceback (most recent call last)" not in trace or not found:
        return output.strip()
    return "\n".join(before.splitlines()[len(trace.splitlines()) + 1 :]).strip() or output.strip()


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
