"""Everything around Python that Spark needs: a Java, the pinned jars, a class-data archive.

`make setup` installs it once per user (`python -m lozenge.toolchain`); afterwards the modules here
only look things up. What is downloaded or generated lives in `cache_path()` and may be deleted at
any time: the next set-up makes it again.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from lozenge.errors import ToolchainError


def cache_path(*parts: str) -> Path:
    """A place in the user's cache; `LOZENGE_CACHE` moves the whole of it, for instance into an image."""
    root = os.environ.get("LOZENGE_CACHE")
    return (Path(root) if root else user_cache_path("lozenge", appauthor=False)).joinpath(*parts)


def spark_home() -> Path:
    """The Spark that `SPARK_HOME` names, else the one inside pyspark, found without importing it."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ToolchainError("looking for Spark: pyspark is not installed", hint="`pip install 'lozenge[job]'`")
    return Path(spec.origin).parent


@contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Lets one process of this user at a time work in a folder of the cache; the others wait.

    The system releases the lock of a process that dies.
    """
    cache_path(folder).mkdir(parents=True, exist_ok=True)
    with cache_path(folder, ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another process is at work in {cache_path(folder)}; waiting for it", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
