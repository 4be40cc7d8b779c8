"""Sinks of a project that a test makes."""

from pathlib import Path

from lozenge.sink_declarations.project import DECLARATION, SINKS


def sink_folder(project: Path, name: str, declaration: str) -> Path:
    """The folder of a new sink of the project, with this declaration."""
    folder = project / SINKS / name
    folder.mkdir(parents=True)
    (folder / DECLARATION).write_text(declaration)
    return folder
