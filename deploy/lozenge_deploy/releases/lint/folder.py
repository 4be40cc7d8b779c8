"""Everything that is wrong with a detector's folder, the cheapest first and all at once."""

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from lozenge.detector.input_stream import stream_of
from lozenge.detector.manifest import read
from lozenge.errors import ConfigError
from lozenge.streams.project import Streams
from lozenge_deploy.releases.lint.alert_input import alert_input_problems, alert_input_warnings
from lozenge_deploy.releases.lint.documents import document_problems
from lozenge_deploy.releases.lint.names import name_problem
from lozenge_deploy.releases.lint.project import (
    dependencies_of,
    dependency_problems,
    project_problems,
    project_warnings,
)
from lozenge_deploy.releases.lint.sources import source_problems, source_warnings
from lozenge_deploy.releases.lint.tables import table_problems, table_warnings
from lozenge_deploy.releases.lint.wheel import contents_of, wheel_problems
from lozenge_deploy.releases.source_files import unreadable_entries


@dataclass(frozen=True)
class Findings:
    """What was found in a folder, each line with its file and what to write there.

    With one of `faults` the detector does not run as it would live, so no command runs it. `unfinished` is what it
    lacks besides: it can be tested and tried, and is not deployed. `warnings` are for a person to look at.
    """

    faults: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What keeps it from being deployed."""
        return [*self.faults, *self.unfinished]


def findings(folder: Path) -> Findings:
    """What is wrong with the detector in `folder`; reads its files and runs none of its code.

    What cannot be read is found alone: nobody knows what it would hold.
    """
    name = folder.name
    file = folder / "pyproject.toml"
    if not os.path.lexists(file) and os.access(folder, os.X_OK):
        return Findings([f"pyproject.toml: missing; `lozenge new {name}` writes one"])
    if unreadable := [*unreadable_entries(folder)]:
        return Findings(unreadable)
    try:
        declared, _, declaration = read(file)
        stream = stream_of(declaration, Streams.load(folder), file.name)
    except ConfigError as error:
        return Findings([f"pyproject.toml: {problem}" for problem in error.problems or [_with_hint(error)]])
    project = tomllib.loads(file.read_text("utf-8"))
    contents, dependencies = contents_of(folder), [*dependency_problems(project)]
    faults = [
        *([f"{name}: {problem}"] if (problem := name_problem(name)) else []),
        *([] if declared == name else [f"pyproject.toml: project.name is {declared}, but the folder is {name}"]),
        *project_problems(name, project),
        *(dependencies or wheel_problems(contents, project)),  # the back end refuses them in other words
        *alert_input_problems(folder, declaration),
        *table_problems(folder, declaration),
        *source_problems(folder, contents, dependencies_of(project)),
    ]
    unfinished = [*document_problems(folder, project["project"].get("description"), declaration)]
    warnings = [
        *project_warnings(project),
        *alert_input_warnings(folder, declaration),
        *table_warnings(folder, declaration, stream),
        *source_warnings(folder),
    ]
    return Findings(faults, unfinished, warnings)


def problems(folder: Path) -> list[str]:
    """What keeps the detector in `folder` from being deployed."""
    return findings(folder).problems


def require_sound(folder: Path) -> Findings:
    """What was found, without a problem; raises ConfigError with all problems if there are any."""
    found = findings(folder)
    _require(folder, found.problems)
    return found


def require_runnable(folder: Path) -> Findings:
    """What was found, without a fault; raises ConfigError with all faults if there are any."""
    found = findings(folder)
    _require(folder, found.faults)
    return found


def _require(folder: Path, problems: list[str]) -> None:
    if problems:
        raise ConfigError(
            f"checking {folder.name}: {len(problems)} problem(s)",
            problems=problems,
            hint=f"fix them, then `lozenge check {folder.name}` again",
        )


def _with_hint(error: ConfigError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
