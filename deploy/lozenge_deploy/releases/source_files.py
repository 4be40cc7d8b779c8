"""The files of a detector's folder."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
"""The file by which Python knows a virtual environment."""
_NO_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def source_files(folder: Path) -> Iterator[Path]:
    """Every file below `folder` that its wheel may hold, in order; linked folders count as folders.

    Files and folders whose names begin with a dot, compiled modules and virtual environments belong to tools. What
    cannot be read is not among them.
    """
    yield from sorted(path for path, fault in _below(folder, {folder.resolve()}) if not fault)


def unreadable_entries(folder: Path) -> Iterator[str]:
    """What no build can read below `folder`, in order: its path there, and what to do."""
    if fault := _fault(folder):
        yield f"{visible(Path(folder.name))}: {fault}"
        return
    found = sorted((path, fault) for path, fault in _below(folder, {folder.resolve()}) if fault)
    for path, fault in found:
        yield f"{visible(path.relative_to(folder))}: {fault}"


def visible(path: Path) -> str:
    """A path as text, in which bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _below(folder: Path, entered: set[Path]) -> Iterator[tuple[Path, str]]:
    """Each file, with "" or why it cannot be read; a folder only if it cannot be read."""
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if visible(Path(entry.name)) != entry.name:
            yield path, "its name is not UTF-8: rename it"  # the build back end fails at it, even if it excludes it
            continue
        if entry.name.startswith(".") or entry.name.endswith((".pyc", ".pyo")):
            continue
        if entry.name == "__pycache__" and path.is_dir():  # a file or a link to nothing of that name is no tool's
            continue
        fault = _fault(path)
        if fault or not path.is_dir():
            yield path, fault
        elif any(each.is_relative_to(path.resolve()) for each in entered):
            yield path, "a link to a folder that holds it, which has no end: remove it, or link what is needed alone"
        elif not (path / VIRTUAL_ENVIRONMENT).exists():
            yield from _below(path, entered | {path.resolve()})


def _fault(path: Path) -> str:
    """Why a file or folder cannot be read; "" if it can."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        target = visible(Path(os.readlink(path))) if path.is_symlink() else ""
        if target and error.errno == errno.ELOOP:
            return f"a link that leads back to itself, by {target}: remove it"
        if target and error.errno == errno.ENOENT:
            return f"a link to nothing, {target}: remove it, or put there what it names"
        return f"cannot be read: {error.strerror}"
    if kind := _NO_FILES.get(stat.S_IFMT(mode)):
        return f"{kind}, which no wheel can hold: remove it"
    needed = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
    return "" if os.access(path, needed) else "cannot be read by this user: see its permissions"
