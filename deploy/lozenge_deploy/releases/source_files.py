"""The files of a detector's folder."""

import os
from collections.abc import Iterator
from pathlib import Path

VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
"""The file by which Python knows a virtual environment."""


def source_files(folder: Path) -> Iterator[Path]:
    """Every file below `folder` that its wheel may hold, in order; linked folders count as folders.

    Files and folders whose names begin with a dot, compiled modules and virtual environments belong to tools.
    """
    yield from sorted(_below(folder, {folder.resolve()}))


def _below(folder: Path, entered: set[Path]) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name == "__pycache__" or entry.name.endswith((".pyc", ".pyo")):
            continue
        if not entry.is_dir():
            yield path
        elif (real := path.resolve()) not in entered and not (path / VIRTUAL_ENVIRONMENT).exists():
            yield from _below(path, entered | {real})
