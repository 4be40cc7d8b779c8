"""Where a process puts its temporary files, so that what it leaves when it is killed does not fill the machine.

Spark tidies up after itself only where it ends by itself: each killed job leaves its blocks, its native libraries
and its artifacts.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_KEPT = "lozenge-jvm-crash-*"


def scratch(place: Path) -> dict[str, str]:
    """Empties `place`, all but a JVM's reports of crashes, and gives the variables of a process that uses it.

    Nobody may use it while it is emptied. Raises OSError if it cannot be made.
    """
    place.mkdir(parents=True, exist_ok=True)
    kept = set(place.glob(_KEPT))
    for left in place.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        elif left not in kept:
            with contextlib.suppress(OSError):
                left.unlink()
    return _variables(place)


@contextlib.contextmanager
def passing_scratch() -> Iterator[dict[str, str]]:
    """The variables of processes that end with the block; what they leave behind goes then, however they ended."""
    with tempfile.TemporaryDirectory(prefix="lozenge-", ignore_cleanup_errors=True) as place:
        yield _variables(Path(place))


def _variables(place: Path) -> dict[str, str]:
    return {"TMPDIR": str(place)}
