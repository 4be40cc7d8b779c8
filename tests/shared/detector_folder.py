"""The smallest folder that holds a detector."""

from pathlib import Path

MODULE = """
from lozenge import Detector, Settings

detector = Detector(lambda events, settings, tables: events, settings=Settings)
"""
PROJECT = """
[project]
name = "{name}"
version = "1.0"

[tool.lozenge]
kind = "rule"
owner = "nobody"
title = "Nothing"
"""


def write_detector(parent: Path, name: str, *, module: str = MODULE, project: str | None = PROJECT) -> Path:
    """Writes the folder of the detector `name`, without a `project` if it is None; gives the folder."""
    folder = parent / name
    folder.mkdir()
    (folder / f"{name}.py").write_text(module)
    if project is not None:
        (folder / "pyproject.toml").write_text(project.format(name=name))
    return folder
