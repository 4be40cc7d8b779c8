"""Folders for the temporary files of a process, so that a killed one does not fill the disk.

Spark removes its files only on a regular exit: each killed job leaves its blocks, its native libraries and its
artifacts.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_KEPT = "lozenge-jvm-crash-*"


def emptied(folder: Path) -> dict[str, str]:
    """Empties `folder` except for a JVM's crash reports, and returns the variables of a process that uses it.

    No process may use it at that time. Raises OSError if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = set(folder.glob(_KEPT))
    for left in folder.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        elif left not in kept:
            with contextlib.suppress(OSError):
                left.unlink()
    return _variables(folder)


@contextlib.contextmanager
def temporary_folder() -> Iterator[dict[str, str]]:
    """The variables of processes that end with the block; their files are removed at its end, however they exited."""
    with tempfile.TemporaryDirectory(prefix="lozenge-", ignore_cleanup_errors=True) as folder:
        yield _variables(Path(folder))


def _variables(folder: Path) -> dict[str, str]:
    return {"TMPDIR": str(folder)}
