"""A disk that is full, for this process: the largest size of its files is limited, which needs no root.

A write beyond it fails with EFBIG as one on a full disk does with ENOSPC: both are an OSError of the call that writes.
Python would leave the half of a module that it compiles meanwhile, and every later process would fail to import that.
"""

import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMPILES_NOTHING = {"PYTHONDONTWRITEBYTECODE": "1"}
"""For the environment of a process that is to be limited."""
MEMORY = Path("/dev/shm")
"""A disk of its own on every Linux."""


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes within the block."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    compiles_nothing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        sys.dont_write_bytecode = compiles_nothing
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def limit_files_of(pid: int, size: int) -> None:
    """The same for another process of ours, from now on. It was started with `COMPILES_NOTHING`."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@contextmanager
def folder_on_another_disk(than: Path) -> Iterator[Path]:
    """A new folder that is on another disk than a folder."""
    assert MEMORY.stat().st_dev != than.stat().st_dev, f"{MEMORY} is no other disk than that of {than}"
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="lozenge-") as folder:
        yield Path(folder)
