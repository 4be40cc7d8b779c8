"""Reads the tables of a project: `upstream/tables/<name>/table.toml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lozenge.errors import ConfigError, UsageError
from lozenge.platform_tables.definition import PlatformTable
from lozenge.process.text_files import UnreadableText, problems_of, read_toml
from lozenge.toml_places import Problem

DECLARATION = "table.toml"
TABLES = Path("upstream", "tables")


def names_in(project: Path) -> list[str]:
    """The names of the tables of a project, whether they are sound or not."""
    return [file.parent.name for file in sorted((project / TABLES).glob(f"*/{DECLARATION}"))]


def read_table(folder: Path) -> PlatformTable:
    """The table in `folder`; raises ConfigError with every problem of its file at once."""
    file = folder / DECLARATION
    problems = list[str]()
    try:
        declared, places = read_toml(file)
        if "name" in declared:
            problems.append(places.said(file.name, Problem(("name",), "the name of the folder is that of the table")))
        table = PlatformTable.model_validate({**declared, "name": folder.name})
        if not problems:
            return table
    except UnreadableText as error:
        problems.append(f"{file.name}: {error}")
    except ValidationError as error:
        problems += [places.said(file.name, problem) for problem in problems_of(error)]
    raise ConfigError(
        f"reading the table {folder}: {len(problems)} problem(s)",
        problems=problems,
        hint="fix what is named; the page on tables has every key",
    )


def table_of(declaration: Mapping[str, Any]) -> PlatformTable:
    """The table of a release; raises ValueError for a declaration of another version of the platform."""
    return PlatformTable.model_validate(declaration)


def table_named(project: Path, name: str) -> PlatformTable:
    """The table `name` of a project; raises UsageError if there is none, else as `read_table` does."""
    folder = project / TABLES / name
    if (folder / DECLARATION).is_file():
        return read_table(folder)
    have = ", ".join(names_in(project)) or "none"
    raise UsageError(
        f"looking for the table {name}: {folder} has no {DECLARATION}; there are {have}",
        hint="run this in the project; the page on tables shows how one is declared",
    )
