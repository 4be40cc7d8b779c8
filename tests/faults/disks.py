"""Small disks that can be filled: a tmpfs per folder, where this machine lets us mount one."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILLER = "filler"
CHUNK = b"\0" * (1 << 20)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[str]:
    """`folder` as a file system of its own for the length of the block; gives why it is not, "" if it is.

    What lies in it is lost at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(["mount", *options], capture_output=True, text=True)
        refused = mounted.stderr.strip() if mounted.returncode else ""
    except OSError as error:
        refused = str(error)
    try:
        yield refused
    finally:
        if not refused:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Nothing can be written to the disk of `folder` within the block."""
    filler = folder / FILLER
    try:
        with filler.open("wb", buffering=0) as file:
            for chunk in (CHUNK, b"\0" * 512):
                _fill(file.fileno(), chunk)
        yield
    finally:
        filler.unlink(missing_ok=True)


def _fill(descriptor: int, chunk: bytes) -> None:
    try:
        while os.write(descriptor, chunk):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
